"""Joint centers over the network: three keepers, real processes, and what goes wrong with them."""

import shutil
import signal
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from tests.joint.hospitals import PROTOCOL, hospital
from tests.network.networks import Network, eventually, free_port, run
from unpooled import Federation
from unpooled.analyses.protocols.ask_protocol import ProtocolReplies
from unpooled.center.policy import Policy
from unpooled.center.questions import Answer, JointQuestion, JointShares, Reason, Refusal
from unpooled.center.records.keys import CenterKey
from unpooled.center.records.ledger import read as read_ledger
from unpooled.center.records.sealing import sealed_shares
from unpooled.errors import InputError
from unpooled.federation.joint.network import NetworkKeepers
from unpooled.federation.network.setup.kits import read_federation, read_kit, user_name

NAMES = ("Haifa", "Bern", "Porto", "Gent")
KEEPERS = NAMES[:3]
POLICY = '[policy]\nk = 5\nad_hoc = "free"'


def frames() -> dict[str, pl.DataFrame]:
    rng = np.random.default_rng(3)
    return {name: hospital(rng, people) for name, people in zip(NAMES, (9, 7, 8, 6), strict=True)}


@pytest.fixture(scope="module")
def network(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Network]:
    pytest.importorskip("nvflare", reason="nvflare is not installed")
    network = Network(tmp_path_factory.mktemp("joint"), NAMES)
    network.folder.mkdir(exist_ok=True)
    keepers = "".join(f'\n[[keepers]]\nname = "{name}"\n' for name in KEEPERS)
    names = ", ".join(f'"{name}"' for name in NAMES)
    network.toml.write_text(
        f'name = "trial"\ncenters = [{names}]\n\n'
        f'[coordinator]\naddress = "localhost"\nport = {free_port()}\n{keepers}'
    )
    run("federation", "init", network.toml)
    for name, frame in frames().items():
        frame.write_csv(network.kit(name) / "data.csv")
        network.write_center(name, 'data = "data.csv"', POLICY)
    try:
        network.start_all()
        yield network
    finally:
        network.end_all()


def ask(network: Network, timeout: float = 90) -> ProtocolReplies:
    with Federation.connect(network.toml, timeout=timeout, on_missing="exclude", joint=True) as fed:
        return fed._ask_protocol(fed._coordinator.converse(), PROTOCOL)


def test_kits_pin_the_keepers_and_each_has_a_key_of_its_own(network: Network) -> None:
    for name in (*NAMES, "analyst", "coordinator"):
        kit = network.kit(name)
        role = name if name in ("analyst", "coordinator") else "center"
        keepers = read_kit(kit, role).keepers  # type: ignore[arg-type]
        assert tuple(keeper.name for keeper in keepers) == KEEPERS
        assert (kit / "keeper.key").exists() == (name in KEEPERS)
    assert len({(network.kit(name) / "keeper.key").read_bytes() for name in KEEPERS}) == 3


def test_a_lost_keeper_is_named_nothing_is_told_and_a_second_run_is_that_of_one_process(
    network: Network, tmp_path: Path
) -> None:
    network.running["Porto"].end(signal.SIGKILL)
    lost = ask(network, timeout=25)
    assert lost.no_joint is not None
    assert not lost.members
    assert not lost.answers
    network.start("Porto")

    def again() -> ProtocolReplies:
        replies = ask(network)
        assert replies.members == NAMES, (replies.no_joint, replies.refusals)
        return replies

    replies = eventually(again)
    answer = replies.answers["joint (4 centers)"]
    twin = Federation.local(
        frames(), policy=Policy(k=5, ad_hoc="free"), ledger=tmp_path, joint=True
    )
    with twin:
        local = twin._ask_protocol(twin._coordinator.converse(), PROTOCOL)
    sizes, part = answer.parts[0].answer, local.answers["joint (4 centers)"].parts[0].answer
    assert sizes == part  # edges are aimed by keys of their own, sizes are not
    for name in KEEPERS:
        ledger = network.kit(name) / "joint center.ledger"
        _, entries = read_ledger(ledger)
        assert [entry.kind for entry in entries].count("release") == 1
        run("ledger", "verify", ledger)
    assert not (network.kit("Gent") / "joint center.ledger").exists()
    for name in NAMES:  # members keep what it said beside their own ledgers
        member = network.kit(name) / f"{name}.joint.ledger"
        assert len(read_ledger(member)[1]) == 1
        run("ledger", "verify", member)
    assert ask(network).answers == replies.answers


def test_shares_that_an_analyst_made_up_for_a_member_are_refused(network: Network) -> None:
    from unpooled.federation.network.setup.certificates import share_signer

    stranger = CenterKey.generate()
    for sign in (stranger.sign, share_signer(network.kit("Bern"))):  # also by another center
        replies = eventually(partial(ask_with_made_up, network, stranger.secret, sign))
        rule = Refusal(reason=Reason.WRONG_SIGNATURE).rule
        assert replies.no_joint == f"keeper Haifa: {rule} (Gent)", replies.refusals
        assert not replies.answers
    for name in KEEPERS:
        run("ledger", "verify", network.kit(name) / "joint center.ledger")


def ask_with_made_up(
    network: Network, secret: bytes, sign: Callable[[bytes], bytes]
) -> ProtocolReplies:
    """An analyst brings the keepers shares of their own, in the place of Gent's."""
    with Federation.connect(network.toml, timeout=90, on_missing="exclude", joint=True) as fed:
        keepers = fed._keepers
        assert isinstance(keepers, NetworkKeepers)
        bring = keepers.compute

        def compute(question: JointQuestion, shares: Mapping[str, JointShares]) -> Answer:
            nobody = np.zeros(question.length("Gent"), dtype=np.int64)
            made = sealed_shares(question, "Gent", nobody, secret, sign)
            return bring(question, {**shares, "Gent": made})

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(keepers, "compute", compute)
            replies = fed._ask_protocol(fed._coordinator.converse(), PROTOCOL)
        assert "Gent" in str(replies.no_joint), (replies.no_joint, replies.refusals)
        return replies


def test_only_the_center_itself_can_sign_for_it(network: Network, tmp_path: Path) -> None:
    from unpooled.federation.network.setup.certificates import is_signed_by_center, share_signer

    is_signed = is_signed_by_center(network.kit("Haifa"))
    words, other = b"7 people", Network(tmp_path / "other", NAMES)
    signature = share_signer(network.kit("Gent"))(words)
    assert is_signed("Gent", words, signature)
    assert share_signer(network.kit("Gent"))(words) == signature  # a steward decides on these bytes
    assert not is_signed("Bern", words, signature)
    assert not is_signed("Gent", b"8 people", signature)
    assert not is_signed("Gent", words, b"")
    assert not is_signed("Gent", words, signature[:-1])
    other.make()
    assert not is_signed("Gent", words, share_signer(other.kit("Gent"))(words))
    analyst = share_signer(network.kit("analyst"))(words)
    assert not is_signed(user_name("analyst"), words, analyst)
    coordinator = tmp_path / "coordinator" / "startup"
    coordinator.mkdir(parents=True)
    for end in ("crt", "key"):
        from_kit = network.kit("coordinator") / "startup" / f"server.{end}"
        shutil.copy(from_kit, coordinator / f"client.{end}")
    assert not is_signed("coordinator", words, share_signer(coordinator.parent)(words))


FEDERATION = """
name = "trial"
centers = ["Haifa", "Bern", "Porto"]
[coordinator]
address = "localhost"
"""


@pytest.mark.parametrize(
    ("names", "message"),
    [
        (("Haifa", "Bern"), "keepers must name 3 different centers, got ['Haifa', 'Bern']"),
        (("Haifa", "Bern", "Bern"), "keepers must name 3 different centers"),
        (("Haifa", "Bern", "Oslo"), "keepers: there is no center 'Oslo'"),
    ],
)
def test_keepers_are_three_centers(tmp_path: Path, names: tuple[str, ...], message: str) -> None:
    file = tmp_path / "federation.toml"
    keepers = [f'[[keepers]]\nname = "{name}"\naddress = "localhost"\n' for name in names]
    file.write_text(FEDERATION + "".join(keepers))
    with pytest.raises(InputError) as caught:
        read_federation(file)
    assert message in str(caught.value)
    shutil.rmtree(tmp_path)
