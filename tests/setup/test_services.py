from pathlib import Path

import psycopg
import redis

from tests import conftest, services


def test_the_redis_of_the_tests_is_recent_and_starts_empty(redis_url: str) -> None:
    with redis.Redis.from_url(redis_url) as client:
        assert int(client.info("server")["redis_version"].split(".")[0]) >= 6
        assert client.dbsize() == 0


def test_a_redis_of_ones_own_keeps_its_address_and_its_data_over_a_restart(
    own_redis: services.RedisServer,
) -> None:
    with redis.Redis.from_url(own_redis.url) as client:
        client.set("kept", "1")
    own_redis.stop()
    own_redis.start()
    with redis.Redis.from_url(own_redis.url) as client:
        assert client.get("kept") == b"1"


def test_the_postgres_of_the_tests_is_real_and_each_database_is_apart(
    postgres_databases: services.Databases,
) -> None:
    first, second = postgres_databases.create(), postgres_databases.create()
    with psycopg.connect(services.libpq(first)) as connection:
        connection.execute("CREATE TABLE mark (x int)")
        assert connection.info.server_version >= 140000
    with psycopg.connect(services.libpq(second)) as connection:
        assert connection.execute("SELECT to_regclass('mark')").fetchone() == (None,)
    postgres_databases.drop(first)
    postgres_databases.drop(second)


def test_the_files_that_go_first_are_there() -> None:
    tests = Path(services.__file__).parent
    assert [name for name in conftest.LONGEST if not (tests / name).is_file()] == []
