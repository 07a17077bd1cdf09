"""The job that stays open: our controller at the coordinator, our executor at every center."""

import json
from collections.abc import Iterable
from pathlib import Path

from unpooled.links.flare.lockdown import CONTROLLER, EXECUTOR

JOB = "questions"


def write_job(folder: Path, centers: Iterable[str], executor: str = EXECUTOR) -> None:
    """Write the job as the engine wants it: settings only, no code."""
    app = folder / "app" / "config"
    app.mkdir(parents=True)
    meta = {
        "name": JOB,
        "resource_spec": {},
        "min_clients": 1,
        "deploy_map": {"app": ["server", *centers]},
    }
    server = {
        "format_version": 2,
        "server": {"task_request_interval": 0.1},
        "task_data_filters": [],
        "task_result_filters": [],
        "components": [],
        "workflows": [{"id": "questions", "path": CONTROLLER, "args": {}}],
    }
    client = {
        "format_version": 2,
        "default_task_fetch_interval": 0.1,
        "executors": [{"tasks": ["question"], "executor": {"path": executor, "args": {}}}],
        "task_data_filters": [],
        "task_result_filters": [],
        "components": [],
    }
    for path, content in (
        (folder / "meta.json", meta),
        (app / "config_fed_server.json", server),
        (app / "config_fed_client.json", client),
    ):
        path.write_text(json.dumps(content, indent=2))
