"""Centers and three keepers on one machine: what crosses between them is heard, and may be changed.

Everything runs as over a network but the engine: centers behind their gates, each keeper beside its
center with a process of its own, whose messages are carried from mailbox to mailbox.
"""

import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import msgspec
import polars as pl

from tests.joint.keepers import PATIENT
from unpooled import Federation
from unpooled.center import Center
from unpooled.center.data.sources import open_source
from unpooled.center.policy import Policy
from unpooled.center.questions import Keeper, Reason, Refusal
from unpooled.center.questions.joint import KeepQuestion
from unpooled.center.records.keys import CenterKey
from unpooled.center.records.sealing import SealKey
from unpooled.federation.joint.keepers.carried import batch, framed, frames
from unpooled.federation.joint.keepers.keeping import HOLD, KEEP, Keeping
from unpooled.federation.joint.local import signed_by
from unpooled.federation.joint.network import NetworkKeepers
from unpooled.federation.joint.record import JointRecord
from unpooled.federation.network.setup.kits import KitKeeper

Change = Callable[[str, str, bytes], bytes | None]  # from, to, message; None loses it


def key_of(name: str) -> CenterKey:
    """A key that is the same in each run."""
    return CenterKey.from_seed(1, name)


class OneMachine:
    """A link to these centers, of which the first three keep.

    `heard` has all bytes by who received them: a center, a keeper or the coordinator. `change` may
    change what passes; `lost` are centers that do not answer.
    """

    def __init__(
        self,
        data: Mapping[str, pl.DataFrame],
        policy: Policy,
        folder: Path,
        change: Change | None = None,
        patience: float = 20.0,
    ) -> None:
        self.heard: dict[str, list[bytes]] = {}
        self.lost: set[str] = set()
        self.change = change
        self.folder = folder
        names = list(data)[:3]
        private = {name: bytes([place + 1]) * 32 for place, name in enumerate(names)}
        self.places = [KitKeeper(name=n, public=SealKey(private[n]).public) for n in names]
        publics = {place.name: place.public for place in self.places}
        self.all = {
            name: Center(
                name,
                open_source(frame),
                policy,
                key_of(name),
                ledger=folder / f"{name}.ledger",
                keepers=publics,
            )
            for name, frame in data.items()
        }
        self.keepings = {
            name: Keeping(
                name,
                private[name],
                self.places,
                self.all[name],
                JointRecord(
                    CenterKey.from_seed(1, f"keeper {name}"), folder / f"keeper {name}.ledger"
                ),
                signed_by({member: key_of(member).public for member in data}),
                patience=patience,
            )
            for name in names
        }
        self.keepers = NetworkKeepers(self, [Keeper(name=n, public=p) for n, p in publics.items()])

    @property
    def centers(self) -> tuple[str, ...]:
        """All of them."""
        return tuple(self.all)

    def federation(self) -> Federation:
        """What the analyst holds."""
        return Federation(self, on_missing="exclude", keepers=self.keepers)

    def ask(
        self, question: bytes, centers: Sequence[str], *, stewards: bool = True
    ) -> Mapping[str, bytes | Refusal]:
        """Each one's release; keepers compute at once."""
        if question.startswith(KEEP):
            return self._keep(question, centers)
        replies: dict[str, bytes | Refusal] = {}
        for name in centers:
            asked = self._passed("coordinator", name, question)
            if name in self.lost or asked is None:
                replies[name] = Refusal(reason=Reason.NOT_CONNECTED)
                continue
            answers = self.keepings[name] if asked.startswith(HOLD) else self.all[name]
            reply = self._passed(name, "coordinator", answers.answer(asked).payload)
            replies[name] = Refusal(reason=Reason.NO_ANSWER, limit=60) if reply is None else reply
        return replies

    def close(self) -> None:
        """Let go of all ledgers."""
        for keeping in self.keepings.values():
            keeping.close()
        for center in self.all.values():
            center.close()

    def _passed(self, sender: str, receiver: str, message: bytes) -> bytes | None:
        changed = message if self.change is None else self.change(sender, receiver, message)
        if changed is not None:
            self.heard.setdefault(receiver, []).append(changed)
        return changed

    def _keep(self, question: bytes, names: Sequence[str]) -> Mapping[str, bytes | Refusal]:
        for name in names:
            self._passed("coordinator", name, question)
        run = msgspec.json.decode(question, type=KeepQuestion).run
        places = [place.name for place in self.places]
        boxes = {name: self.keepings[name].mailbox(run) for name in names}

        def hand_on(sender: str) -> None:
            while (some := batch(boxes[sender].leaving)) is not None:
                for place, message in frames(some):
                    receiver = places[place]
                    words = self._passed(f"keeper {sender}", f"keeper {receiver}", message)
                    if words is None:  # the two cannot hear each other any more
                        boxes[receiver].lose(places.index(sender))
                        boxes[sender].lose(place)
                    else:
                        boxes[receiver].arriving.put(framed(places.index(sender), words))

        hands = [threading.Thread(target=hand_on, args=(name,)) for name in names]
        with ThreadPoolExecutor(len(names)) as pool:
            each = {n: pool.submit(self.keepings[n].answer, question) for n in names}
            for hand in hands:
                hand.start()
            try:
                replies = {name: one.result(PATIENT).payload for name, one in each.items()}
            finally:
                for box in boxes.values():
                    box.leaving.put(None)
                for hand in hands:
                    hand.join(PATIENT)
        for name, reply in replies.items():
            self._passed(name, "coordinator", reply)
        return dict(replies)
