"""What a participant gets: keys, settings without holes, nothing of anybody else."""

import json
import socket
import ssl
import threading
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from tests.network.networks import Network, run
from unpooled import Federation
from unpooled.center.config import read_center
from unpooled.errors import InputError, LinkError
from unpooled.federation.network.setup.kits import read_federation, read_kit

FEDERATION = """
name = "trial"
centers = ["Haifa", "Bern"]
[coordinator]
address = "localhost"
port = 8002
"""


@pytest.fixture(scope="module")
def network(tmp_path_factory: pytest.TempPathFactory) -> Network:
    pytest.importorskip("nvflare", reason="nvflare is not installed")
    network = Network(tmp_path_factory.mktemp("kits"), ("Haifa", "Bern"))
    network.make()
    return network


def settings(network: Network, name: str, file: str) -> dict[str, object]:
    content: dict[str, object] = json.loads((network.kit(name) / "local" / file).read_text())
    return content


def test_everybody_gets_a_kit_of_his_own(network: Network) -> None:
    kits = {path.name for path in (network.folder / "kits").iterdir()}
    assert kits == {"coordinator", "Haifa", "Bern", "analyst", "authority"}
    for name, role in (("Haifa", "center"), ("coordinator", "coordinator"), ("analyst", "analyst")):
        assert read_kit(network.kit(name), role).name == name  # type: ignore[arg-type]
    for path in (network.folder / "kits").rglob("*.key"):
        assert path.stat().st_mode & 0o077 == 0
    authority = network.folder / "kits" / "authority"
    assert any("PRIVATE KEY" in path.read_text() for path in authority.rglob("*.json"))
    for path in (authority, *authority.rglob("*")):
        assert path.stat().st_mode & 0o077 == 0, path
    assert not list((network.folder / "kits").rglob("*.sh"))


def test_a_new_centers_policy_is_the_careful_one(network: Network) -> None:
    file = network.kit("Haifa") / "center.toml"
    policy = read_center(file).policy
    assert (policy.k, policy.ad_hoc, policy.groupings) == (10, "groupings", None)
    assert policy.refusals_a_day == 200
    text, example = file.read_text(), "# groupings = "
    assert text.count(example) == 1
    declared = file.with_name("declared.toml")
    declared.write_text(text.replace(example, "groupings = "))
    assert read_center(declared).policy.groupings == {"sex": (), "arm": (), "age": (65,)}


@pytest.mark.parametrize("name", ["Haifa", "Bern"])
def test_no_role_may_bring_code_or_operate_or_use_a_shell(network: Network, name: str) -> None:
    roles = settings(network, name, "authorization.json")["permissions"]
    assert isinstance(roles, dict)
    assert set(roles) == {"project_admin", "org_admin", "lead", "member"}
    for rights in roles.values():
        for right in ("byoc", "shell_commands", "operate", "manage_job", "download_job"):
            assert rights[right] == "none"
    assert {role for role, rights in roles.items() if rights["submit_job"] != "none"} == {"lead"}


def test_a_center_allows_exact_classes_and_sends_no_logs(network: Network) -> None:
    resources = settings(network, "Haifa", "resources.json")
    allowed = resources["class_allow_list"]
    assert isinstance(allowed, list)
    assert len(allowed) == 5
    assert not any(name.endswith((".", "*")) for name in allowed)
    assert resources["class_list_enforcement_mode"] == "enforce"
    assert resources["allow_log_streaming"] is False
    assert "SiteLogStreamer" not in json.dumps(resources)
    assert "OnlyReleases" in json.dumps(settings(network, "Haifa", "privacy.json"))


def test_a_center_that_joins_later_gets_a_kit_and_the_others_keep_theirs(network: Network) -> None:
    before = (network.kit("Haifa") / "startup" / "client.crt").read_bytes()
    text = network.toml.read_text()
    network.toml.write_text(text.replace('"Bern"', '"Bern", "Porto"'))
    answer = run("federation", "init", network.toml)
    assert answer.count("kit:") == 1
    assert read_kit(network.kit("Porto"), "center").name == "Porto"
    assert (network.kit("Haifa") / "startup" / "client.crt").read_bytes() == before
    root = [network.kit(n) / "startup" / "rootCA.pem" for n in ("Haifa", "Porto")]
    assert root[0].read_bytes() == root[1].read_bytes()


def test_kits_that_cannot_be_made_say_why(network: Network) -> None:
    text = network.toml.read_text()
    network.toml.write_text("days = 7\n" + text)
    answer = run("federation", "init", network.toml, wanted=1)
    network.toml.write_text(text)
    assert "could not be made" in answer
    assert "root_valid_days=7 does not match" in answer
    assert "Traceback" not in answer


def test_check_says_in_plain_words_what_is_wrong(network: Network) -> None:
    kit = network.kit("Bern")
    answer = run("center", "check", kit, wanted=1)
    assert "WRONG  data: " in answer
    assert "data.csv' does not exist" in answer
    assert "WRONG  coordinator: nobody answers" in answer
    rows = "".join(f"{i};{i},5;{i}x\n" for i in range(40))
    (kit / "data.csv").write_text(f"age;crp;person\n{rows}")
    answer = run("center", "check", kit, wanted=1)
    assert "ok     data: 40 rows, 3 columns" in answer
    assert "note   data: crp is read as text, for row 1 has '0,5'. Hint: decimals" in answer
    assert "ok     data: missing cells: none" in answer
    rows = "".join(
        f"{i};{'.' if i % 4 else i};{('F', 'N/A', 'NA', 'M')[i % 4]}\n" for i in range(40)
    )
    (kit / "data.csv").write_text(f"age;crp;sex\n{rows}")
    answer = run("center", "check", kit, wanted=1)
    assert "ok     data: missing cells: crp 30, sex 10" in answer
    assert "note   data: sex is text, so 'N/A' in 10 cells is taken for a group's name." in answer
    assert 'say missing = ["N/A"] in [variables.sex]' in answer
    assert "WRONG  data" not in answer
    with (kit / "center.toml").open("a") as file:
        file.write("\n[variables.age]\nresolution = 7\n[variables.crp]\nupper = 20\n")
    answer = run("center", "check", kit, wanted=1)
    assert "WRONG  data: age: people have values between the multiples" in answer
    assert "WRONG  data: crp: values lie outside the limits that are declared" in answer
    text = (kit / "center.toml").read_text()
    assert "[policy]\n" in text
    (kit / "center.toml").write_text(text.replace("[policy]\n", '[policy]\nperson = "agee"\n'))
    answer = run("center", "check", kit, wanted=1)
    assert "WRONG  policy: there is no column 'agee'. Hint: did you mean 'age'?" in answer
    assert "Traceback" not in answer
    (kit / "data.csv").unlink()
    (kit / "local" / "authorization.json").write_text("{}")
    assert "WRONG  engine settings: authorization.json" in run("center", "check", kit, wanted=1)
    (kit / "startup" / "client.crt").write_text("")
    assert "WRONG  certificate" in run("center", "check", kit, wanted=1)
    assert "is not a kit" in run("center", "check", network.folder, wanted=1)


def test_a_certificate_that_ends_is_told_in_time(
    network: Network, monkeypatch: pytest.MonkeyPatch
) -> None:
    from unpooled.federation.network.running import run_center, run_coordinator
    from unpooled.federation.network.setup import certificates
    from unpooled.federation.network.setup.check import check_center

    kit = network.kit("Haifa")

    def printed() -> str:
        return next(str(f) for f in check_center(kit) if f.topic == "certificate")

    assert printed().startswith("ok     certificate: valid until ")
    real = datetime.now(UTC)
    monkeypatch.setattr(certificates, "now", lambda: real + timedelta(days=340))
    assert "in 1" in printed()
    assert "ask for a new kit now" in printed()
    monkeypatch.setattr(certificates, "now", lambda: real + timedelta(days=361))
    assert printed().startswith("WRONG  certificate: it expired on ")
    with pytest.raises(LinkError, match="expired on"):
        run_center(kit, None, print)
    with pytest.raises(LinkError, match="expired on"):
        run_coordinator(network.kit("coordinator"), print)
    with pytest.raises(LinkError, match="expired on"):
        Federation.connect(network.toml)


@pytest.mark.parametrize("days", [10, 700])
def test_all_certificates_end_with_the_authority(tmp_path: Path, days: int) -> None:
    pytest.importorskip("nvflare", reason="nvflare is not installed")
    from unpooled.federation.network.setup import certificates
    from unpooled.federation.network.setup.provision import make_kits

    file = tmp_path / "federation.toml"
    file.write_text(f"days = {days}{FEDERATION}")
    made = make_kits(file)
    assert len(made) == 4
    for kit in made:
        role = {"Haifa": "center", "Bern": "center"}.get(kit.name, kit.name)
        until = certificates.read_certificate(kit, role).until
        assert abs(until - datetime.now(UTC) - timedelta(days=days)) < timedelta(hours=1)


def test_a_slow_clock_is_told_from_a_stranger(
    network: Network, monkeypatch: pytest.MonkeyPatch
) -> None:
    from unpooled.federation.network.running import run_center
    from unpooled.federation.network.setup import certificates
    from unpooled.federation.network.setup.check import check_center

    kit = network.kit("Haifa")
    real = datetime.now(UTC)
    monkeypatch.setattr(certificates, "now", lambda: real - timedelta(hours=1))
    answer = next(str(f) for f in check_center(kit) if f.topic == "certificate")
    assert answer.startswith("WRONG  certificate: it is valid from ")
    assert "and this computer's clock says" in answer
    assert "Hint: set the clock" in answer
    with pytest.raises(LinkError, match="Hint: set the clock"):
        run_center(kit, None, print)
    with pytest.raises(LinkError, match="Hint: set the clock"):
        Federation.connect(network.toml)


@pytest.mark.parametrize(
    ("begins", "ends", "answer"),
    [
        (1, 2, "is not valid yet: the clocks of the two computers differ"),
        (-2, -1, "has expired: the coordinator needs a new kit"),
    ],
)
def test_check_says_when_the_coordinators_certificate_has_other_dates(
    network: Network, tmp_path: Path, begins: int, ends: int, answer: str
) -> None:
    from unpooled.federation.network.setup.check import check_center

    kit = network.kit("Haifa")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate_of_authority(network, tmp_path, begins, ends))
    with socket.create_server(("localhost", read_kit(kit, "center").port)) as coordinator:

        def attend() -> None:
            with suppress(OSError):
                context.wrap_socket(coordinator.accept()[0], server_side=True).close()

        threading.Thread(target=attend, daemon=True).start()
        result = next(f for f in check_center(kit) if f.topic == "coordinator")
    assert not result.good
    assert answer in result.words


def certificate_of_authority(network: Network, folder: Path, begins: int, ends: int) -> Path:
    """A certificate of the federation's own authority, valid between these hours from now."""
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    state = network.folder / "kits" / "authority" / "trial" / "state" / "cert.json"
    kept = json.loads(state.read_text())
    root = x509.load_pem_x509_certificate(kept["root_cert"].encode())
    signs = serialization.load_pem_private_key(kept["root_pri_key"].encode(), None)
    part = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "coordinator")])
    now = datetime.now(UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(root.subject)
        .public_key(part.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now + timedelta(hours=begins))
        .not_valid_after(now + timedelta(hours=ends))
        .sign(signs, hashes.SHA256())  # type: ignore[arg-type]
    )
    pem = serialization.Encoding.PEM
    key = part.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    path = folder / "coordinator.pem"
    path.write_bytes(key + made.public_bytes(pem))
    return path


def test_check_knows_the_coordinator_from_whoever_else_answers(network: Network) -> None:
    kit = network.kit("Haifa")
    with socket.create_server(("localhost", read_kit(kit, "center").port)) as stranger:
        threading.Thread(target=lambda: stranger.accept()[0].close(), daemon=True).start()
        answer = run("center", "check", kit, wanted=1)
    assert "WRONG  coordinator: whoever answers at localhost:" in answer


def test_check_misses_neither_the_ledgers_key_nor_too_few_rows(network: Network) -> None:
    kit = network.kit("Haifa")
    (kit / "data.csv").write_text("los\n1\n2\n")
    (kit / "Haifa.ledger").write_text("")
    answer = run("center", "check", kit, wanted=1)
    assert "WRONG  data: 2 rows, 1 columns; with fewer than 10 nothing can be answered" in answer
    assert "WRONG  ledger: its key is missing" in answer
    assert not (kit / "Haifa.key").exists()
    (kit / "Haifa.ledger").unlink()
    assert "approval: auto" in answer


def test_nothing_starts_from_the_wrong_kit(network: Network) -> None:
    answer = run("center", "start", network.kit("analyst"), wanted=2)
    assert "the kit of the analyst, not of a center" in answer
    answer = run("federation", "status", network.toml, wanted=1)
    assert "the coordinator cannot be reached" in answer


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("centers = []", "at least one center"),
        ('centers = ["Haifa", "haifa"]', "different names"),
        ('centers = ["São João"]', "letters, digits"),
        ('centers = ["coordinator"]', "another meaning"),
        ('centers = ["yes"]', "another meaning"),
        ('centers = ["Haifa"]\ndays = 0', "days"),
        ('centers = ["Haifa"]\nport = 1', "port"),
    ],
)
def test_a_federation_that_cannot_be_is_named(tmp_path: Path, line: str, problem: str) -> None:
    path = tmp_path / "federation.toml"
    path.write_text(FEDERATION.replace('centers = ["Haifa", "Bern"]', line))
    with pytest.raises(InputError, match=problem):
        read_federation(path)
