"""What the engine may do next to a center and next to the coordinator: as little as it can.

Every role is named, since the engine grants some of them everything by default; what is not named
is denied. No code, no shell, no file and no log leaves or enters through the engine.
"""

import json
from pathlib import Path
from typing import Any

ANALYST = "lead"  # the engine's name of the one role that may ask

EXECUTOR = "unpooled.federation.network.engine.executor.QuestionExecutor"
CONTROLLER = "unpooled.federation.network.engine.controller.QuestionController"
RESULT_FILTER = "unpooled.federation.network.engine.result_filter.OnlyReleases"
ANNOUNCER = "unpooled.federation.network.engine.announcer.Announcer"

_ROLES = ("project_admin", "org_admin", ANALYST, "member")
_FORBIDDEN = (
    "submit_job",
    "clone_job",
    "manage_job",
    "download_job",
    "view",
    "operate",
    "shell_commands",
    "byoc",
    "server-predeployed-flwr",
)
_ASKING = {"submit_job": "any", "check_status": "any"}
_KEEPING = {
    **_ASKING,
    "list_jobs": "any",
    "get_job_meta": "any",
    "app_command": "n:submitter",  # so whose job it is says who asks
    "abort_job": "n:submitter",
}
_LOGS = (  # the engine builds them in every job; log streaming itself is off
    "nvflare.app_common.logging.job_log_streamer.JobLogStreamer",
    "nvflare.app_common.logging.job_log_receiver.JobLogReceiver",
)
_MANAGERS = "nvflare.app_common.resource_managers.gpu_resource_manager.GPUResourceManager"
_CONSUMER = "nvflare.app_common.resource_consumers.gpu_resource_consumer.GPUResourceConsumer"
_LAUNCHERS = "nvflare.app_common.job_launcher"
_STORAGE = "nvflare.app_common.storages.filesystem_storage.FilesystemStorage"
_PERSISTOR = "nvflare.app_common.state_persistors.storage_state_persistor.StorageStatePersistor"


def authorization(granted: dict[str, str]) -> dict[str, Any]:
    """Nothing for any role, but what is granted to the analyst."""
    nothing = dict.fromkeys(_FORBIDDEN, "none")
    roles = {role: {**nothing, **(granted if role == ANALYST else {})} for role in _ROLES}
    return {"format_version": "1.0", "permissions": roles}


def center_files() -> dict[str, dict[str, Any]]:
    """The engine's settings next to a center's data, by file name."""
    return {
        "authorization.json": authorization(_ASKING),
        "privacy.json": {
            "scopes": [
                {
                    "name": "releases",
                    "task_result_filters": [{"path": RESULT_FILTER, "args": {}}],
                    "task_data_filters": [],
                }
            ],
            "default_scope": "releases",
        },
        "resources.json": _center_resources(),
        "log_config.json": _log_config(),
    }


def _center_resources() -> dict[str, Any]:
    return {
        "format_version": 2,
        "class_list_enforcement_mode": "enforce",
        "class_allow_list": [EXECUTOR, RESULT_FILTER, ANNOUNCER, *_LOGS],
        "allow_log_streaming": False,
        "client": {"retry_timeout": 30, "compression": "Gzip"},
        "components": [
            {
                "id": "resource_manager",
                "path": _MANAGERS,
                "args": {"num_of_gpus": 0, "mem_per_gpu_in_GiB": 0, "expiration_period": 300},
            },
            {"id": "resource_consumer", "path": _CONSUMER, "args": {}},
            {
                "id": "process_launcher",
                "path": f"{_LAUNCHERS}.client_process_launcher.ClientProcessJobLauncher",
                "args": {},
            },
            {"id": "announcer", "path": ANNOUNCER, "args": {}},
        ],
    }


def coordinator_files(storage: Path) -> dict[str, dict[str, Any]]:
    """The engine's settings at the coordinator, by file name; `storage` is an absolute folder."""
    return {
        "authorization.json": authorization(_KEEPING),
        "resources.json": _coordinator_resources(storage),
        "log_config.json": _log_config(),
    }


def _coordinator_resources(storage: Path) -> dict[str, Any]:
    service = {
        "admin_storage": "transfer",
        "max_num_clients": 100,
        "heart_beat_timeout": 20,
        "admin_timeout": 10.0,
    }
    return {
        "format_version": 2,
        "class_list_enforcement_mode": "enforce",
        "class_allow_list": [CONTROLLER, ANNOUNCER, *_LOGS],
        "servers": [service],
        "snapshot_persistor": _snapshots(storage / "snapshots"),
        "components": _coordinator_components(storage / "jobs"),
    }


def _snapshots(folder: Path) -> dict[str, Any]:
    kept = {"path": _STORAGE, "args": {"root_dir": str(folder), "uri_root": "/"}}
    return {"path": _PERSISTOR, "args": {"uri_root": "/", "storage": kept}}


def _coordinator_components(jobs: Path) -> list[dict[str, Any]]:
    return [
        {
            "id": "job_scheduler",
            "path": "nvflare.app_common.job_schedulers.job_scheduler.DefaultJobScheduler",
            "args": {"max_jobs": 8, "min_schedule_interval": 1.0},
        },
        {
            "id": "job_manager",
            "path": "nvflare.apis.impl.job_def_manager.SimpleJobDefManager",
            "args": {"uri_root": str(jobs), "job_store_id": "job_store"},
        },
        {"id": "job_store", "path": _STORAGE},
        {
            "id": "process_launcher",
            "path": f"{_LAUNCHERS}.server_process_launcher.ServerProcessJobLauncher",
            "args": {},
        },
        {"id": "announcer", "path": ANNOUNCER, "args": {}},
    ]


def analyst_files() -> dict[str, dict[str, Any]]:
    """The engine's settings next to an analyst, by file name."""
    admin = {
        "idle_timeout": 36000.0,
        "login_timeout": 10.0,
        "with_debug": False,
        "authenticate_msg_timeout": 5.0,
        "prompt": "> ",
    }
    return {"resources.json": {"format_version": 1, "admin": admin}}


def _log_config() -> dict[str, Any]:
    """Plain logs in the kit's own folder."""
    return {
        "version": 1,
        "disable_existing_loggers": False,
        "formatters": {
            "plain": {
                "()": "nvflare.fuel.utils.log_utils.BaseFormatter",
                "fmt": "%(asctime)s %(name)s %(levelname)s %(message)s",
            }
        },
        "handlers": {
            "logFileHandler": {
                "class": "logging.handlers.RotatingFileHandler",
                "level": "DEBUG",
                "formatter": "plain",
                "filename": "log.txt",
                "mode": "a",
                "maxBytes": 20971520,
                "backupCount": 10,
            }
        },
        "loggers": {"root": {"level": "INFO", "handlers": ["logFileHandler"]}},
    }


def write_files(folder: Path, files: dict[str, dict[str, Any]]) -> None:
    """Write settings, whole or not at all."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        draft = folder / f".{name}"
        draft.write_text(json.dumps(content, indent=2) + "\n")
        draft.replace(folder / name)


def loosened(folder: Path, files: dict[str, dict[str, Any]]) -> list[str]:
    """The settings in a folder that are not as they must be."""
    return [name for name, content in files.items() if _read(folder / name) != content]


def _read(path: Path) -> object:
    try:
        return json.loads(path.read_bytes())
    except (OSError, ValueError):
        return None
