"""Settings of Spark on the command line: `--conf KEY=VALUE`."""

from collections.abc import Mapping, Sequence

import click

conf_option = click.option(
    "--conf", multiple=True, metavar="KEY=VALUE", help="A setting of Spark; may be repeated."
)
_CODE = ("spark.jars", "spark.submit.pyFiles", "spark.files", "spark.archives")


def parse_conf(conf: Sequence[str]) -> Mapping[str, str]:
    """Return the settings by key; raises `click.BadParameter`."""
    settings = dict(_parse_setting(each) for each in conf)
    _refuse_plain_http(settings)
    return settings


def _parse_setting(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals or not name:
        raise click.BadParameter(f"{text!r} is not of the form KEY=VALUE.", param_hint="--conf")
    return name, value


def _refuse_plain_http(settings: Mapping[str, str]) -> None:
    """Refuse code without TLS, in jars, modules, archives or files: others could replace what Spark runs."""
    for name, value in settings.items():
        if name.startswith(_CODE) and "http://" in value.lower():
            raise click.BadParameter(
                f"{name} names an address with http://. Use https://.", param_hint="--conf"
            )
