"""What the presets say of logins, asked of the real clients; no provider is spoken to."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from clients.kit import CLIENTS
from wrapper.adapters.native import NativeAdapter
from wrapper.adapters.presets import load_preset
from wrapper.login import entry
from wrapper.sandbox import Bounds

if TYPE_CHECKING:
    from pathlib import Path

    from clients.kit import Client

pytest_plugins = ("clients.fixtures",)
pytestmark = [pytest.mark.anyio, pytest.mark.clients, pytest.mark.timeout(120)]

CLAUDE = (
    '{"claudeAiOauth": {"accessToken": "sk-ant-oat01-x", "refreshToken": "sk-ant-ort01-x",'
    ' "expiresAt": 4102444800000, "scopes": ["user:inference"], "subscriptionType": "max"}}'
)
LEFT = {
    "claude": (".credentials.json", CLAUDE),
    "codex": ("auth.json", '{"auth_mode": "apikey", "OPENAI_API_KEY": "sk-test-abcdef"}'),
    "opencode": (".local/share/opencode/auth.json", '{"openai": {"type": "api", "key": "x"}}'),
}
"""What a login leaves in the folder of a client."""


def seat(client: Client, folder: Path, passed: dict[str, str]) -> NativeAdapter:
    """A restricted seat of ``client``, to which ``passed`` is passed."""
    preset = load_preset(client.preset)
    bench = client.bench(folder)
    needed = {
        name: "x"
        for name, setting in preset.settings.items()
        if setting.default is None and not setting.may_be_left_out
    }
    return NativeAdapter(
        preset,
        needed,
        folder / "seat",
        environment={**bench.environment, **passed},
        bounds=Bounds(overall=60),
        passed=tuple(passed),
    )


@pytest.mark.parametrize("name", sorted(LEFT))
async def test_a_client_is_logged_in_once_its_login_is_in_its_folder(tmp_path: Path, name: str) -> None:
    preset, adapter = load_preset(name), seat(CLIENTS[name], tmp_path, {})
    await adapter.version()
    before = await entry(preset, adapter)
    assert before.known is False, before
    file, content = LEFT[name]
    place = tmp_path / "seat" / "home" / file
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text(content)
    after = await entry(preset, adapter)
    assert after.known is True, after


@pytest.mark.parametrize("name", sorted(CLIENTS))
async def test_the_key_with_which_a_client_is_tried_is_a_login(tmp_path: Path, name: str) -> None:
    preset = load_preset(name)
    if preset.login is None:
        pytest.skip("its preset does not say how a login shows")
    assert preset.conformance is not None
    key = preset.conformance.key
    assert key in preset.login.variables
    found = await entry(preset, seat(CLIENTS[name], tmp_path, {key: "x"}))
    assert found.known is True, found
