"""The `tagsmith` command: its options and its subcommands.

Subcommands import their modules when they run, so that `tagsmith version` does not wait for compilers to load.
"""

import argparse
import asyncio
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from tagsmith.core.base.errors import TagsmithError
from tagsmith.core.service import version
from tagsmith.core.service.settings import ANYONE, Settings

#: Exit code for errors that a user can fix: wrong options, a port in use, a data directory in use.
USER_ERROR = 2


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one subcommand and return its exit code."""
    options = _parser().parse_args(arguments)
    try:
        return int(options.run(options))
    except TagsmithError as error:
        print(f"tagsmith: {error.message}", file=sys.stderr)
        for fault in error.faults:
            print(f"  {fault.pointer or f'line {fault.line}'}: {fault.reason}", file=sys.stderr)
        return USER_ERROR
    except KeyboardInterrupt:
        return 130


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="tagsmith",
        description="Train sequence taggers and serve them.",
        epilog="Every option is also an environment variable: --data-dir is TAGSMITH_DATA_DIR.",
    )
    commands = parser.add_subparsers(title="commands", required=True, metavar="COMMAND")

    up = commands.add_parser("up", help="run the whole stack in the foreground")
    _add_place(up)
    _add_access(up)
    up.add_argument("--workers", type=int, metavar="N", help="jobs that train at the same time (1)")
    up.add_argument("--api-processes", type=int, metavar="N", help="API processes (1)")
    up.set_defaults(run=_up)

    demo = commands.add_parser("demo", help="show the whole path in a throw-away stack")
    demo.add_argument("--sentences", type=int, default=5000, metavar="N", help="size of the corpus (5000)")
    demo.set_defaults(run=_demo)

    migrate = commands.add_parser("migrate", help="bring the database to the newest schema")
    migrate.add_argument("--data-dir", type=Path, metavar="PATH", help="as for up")
    migrate.set_defaults(run=_migrate)

    warm = commands.add_parser("warm", help="compile every kernel into the cache")
    warm.set_defaults(run=_warm)

    api = commands.add_parser("api", help="run one API process")
    _add_place(api)
    _add_access(api)
    api.add_argument("--fd", type=int, help=argparse.SUPPRESS)
    api.set_defaults(run=_api)

    health = commands.add_parser("health", help="ask a running API whether it is ready; exit code 0 if so")
    _add_place(health)
    health.set_defaults(run=_health)

    worker = commands.add_parser("worker", help="run one worker process")
    worker.add_argument("--data-dir", type=Path, metavar="PATH", help="as for up")
    worker.set_defaults(run=_worker)

    _add_keys(commands.add_parser("keys", help="make, list and revoke keys"))

    corpus = commands.add_parser("corpus", help="work with corpora")
    actions = corpus.add_subparsers(title="actions", required=True, metavar="ACTION")
    generate = actions.add_parser("generate", help="write a labelled corpus: same seed, same bytes")
    generate.add_argument("--kind", default="references", help="references (default) or addresses")
    generate.add_argument("--sentences", type=int, default=2000, metavar="N", help="how many (2000)")
    generate.add_argument("--seed", type=int, default=1, metavar="N", help="(1)")
    generate.add_argument("--out", type=Path, metavar="FILE", help="standard output if not given")
    generate.set_defaults(run=_generate)

    shown = commands.add_parser("version", help="say which code this is")
    shown.set_defaults(run=_version)
    return parser


def _add_keys(parser: argparse.ArgumentParser) -> None:
    actions = parser.add_subparsers(title="actions", required=True, metavar="ACTION")
    create = actions.add_parser("create", help="make a key and print it; it is not shown again")
    create.add_argument(
        "--scope", action="append", required=True, metavar="SCOPE", help="read, tag, train, promote or admin"
    )
    create.add_argument("--name", default="made by the command line", help="what it is for")
    create.add_argument("--expires-in-days", type=float, metavar="N", help="does not expire if not given")
    create.set_defaults(run=_create_key)
    shown = actions.add_parser("list", help="list all keys, newest first")
    shown.set_defaults(run=_list_keys)
    revoke = actions.add_parser("revoke", help="end a key; running servers follow within two seconds")
    revoke.add_argument("id", metavar="KEY_ID")
    revoke.set_defaults(run=_revoke_key)
    for each in (create, shown, revoke):
        each.add_argument("--data-dir", type=Path, metavar="PATH", help="as for up")


def _add_access(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--access",
        metavar="WHO",
        help=f"keys (default), or {ANYONE} to be called by whoever reaches the port",
    )


def _add_place(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--host", metavar="ADDRESS", help="address to listen on (127.0.0.1)")
    parser.add_argument("--port", type=int, metavar="N", help="port to listen on; 0 for a free one (8765)")
    parser.add_argument(
        "--data-dir", type=Path, metavar="PATH", help="database, Redis and caches (.tagsmith)"
    )


def _settings(options: argparse.Namespace) -> Settings:
    return Settings.from_env(
        overrides={
            name: getattr(options, name, None)
            for name in ("host", "port", "data_dir", "workers", "api_processes", "access")
        }
    )


def _up(options: argparse.Namespace) -> int:
    from tagsmith.app.cli import keys  # noqa: PLC0415
    from tagsmith.app.cli.console import Console  # noqa: PLC0415
    from tagsmith.app.cli.supervisor import Supervisor  # noqa: PLC0415

    settings = _settings(options)
    keys.require_key_unless_loopback(settings)

    async def supervise() -> int:
        return await Supervisor(settings, Console()).run()

    return asyncio.run(supervise())


def _demo(options: argparse.Namespace) -> int:
    from tagsmith.app.cli import demo  # noqa: PLC0415

    return demo.run(options.sentences)


def _migrate(options: argparse.Namespace) -> int:
    from tagsmith.core.store import migrate  # noqa: PLC0415

    settings = _settings(options)
    settings.data_dir.mkdir(parents=True, exist_ok=True)
    migrate.upgrade(settings.database_url)
    return 0


def _warm(_options: argparse.Namespace) -> int:
    from tagsmith.core.pipeline import warm  # noqa: PLC0415

    print(f"kernels ready in {warm.cache_kernels(os.cpu_count() or 1):.1f} s")
    return 0


def _api(options: argparse.Namespace) -> int:
    from tagsmith.app.cli import api, keys  # noqa: PLC0415

    settings = _settings(options)
    keys.require_key_unless_loopback(settings)
    return api.serve(settings, options.fd)


def _create_key(options: argparse.Namespace) -> int:
    from tagsmith.app.cli import keys  # noqa: PLC0415

    return keys.create(_settings(options), options.name, options.scope, options.expires_in_days)


def _list_keys(options: argparse.Namespace) -> int:
    from tagsmith.app.cli import keys  # noqa: PLC0415

    return keys.list_keys(_settings(options))


def _revoke_key(options: argparse.Namespace) -> int:
    from tagsmith.app.cli import keys  # noqa: PLC0415

    return keys.revoke(_settings(options), options.id)


def _health(options: argparse.Namespace) -> int:
    from tagsmith.app.cli import health  # noqa: PLC0415

    return health.check(_settings(options))


def _worker(options: argparse.Namespace) -> int:
    # Replaces this process: `app` and `worker` must not import each other.
    command = [sys.executable, "-m", "tagsmith.worker"]
    os.execve(sys.executable, command, _settings(options).child_environment())  # noqa: S606


def _generate(options: argparse.Namespace) -> int:
    from tagsmith.core.corpus.synthetic.generate import generate  # noqa: PLC0415

    chunks = generate(options.kind, options.sentences, options.seed)
    if options.out is None:
        sys.stdout.buffer.writelines(chunks)
        return 0
    with options.out.open("wb") as out:
        out.writelines(chunks)
    return 0


def _version(_options: argparse.Namespace) -> int:
    print(f"tagsmith {version.code_version()}")
    return 0
