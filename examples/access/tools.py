"""The tools of an access desk. They do what they are asked: it is the procedure that says what may be asked of them."""

from __future__ import annotations

import sqlite3
from typing import Any

from formal_llm.tools import Toolkit, tool

TODAY = "2026-11-26"

SCHEMA = """
CREATE TABLE employee (
    employee_id TEXT PRIMARY KEY, name TEXT, kind TEXT, status TEXT, manager TEXT, pin TEXT, code TEXT,
    budget INTEGER, training_day TEXT, reset_day TEXT
);
CREATE TABLE system (system TEXT PRIMARY KEY, level TEXT, owner TEXT, price INTEGER, conflict TEXT);
CREATE TABLE access (employee_id TEXT, system TEXT, until_day TEXT, PRIMARY KEY (employee_id, system));
CREATE TABLE approval (employee_id TEXT, system TEXT, approver TEXT);
CREATE TABLE device (serial TEXT PRIMARY KEY, owner TEXT, encrypted INTEGER, state TEXT);
"""

EMPLOYEES = [
    ("ada", "Ada", "staff", "active", "mia", "1111", "a-17", 100, "2026-03-02", "2026-10-01"),
    ("ben", "Ben", "staff", "active", "mia", "2222", "b-23", 100, "2023-05-01", "2026-11-26"),
    ("cem", "Cem", "contractor", "active", "mia", "3333", "c-31", 60, "2026-09-14", "2026-08-20"),
    ("dot", "Dot", "staff", "left", "mia", "4444", "d-42", 100, "2026-01-15", "2026-06-01"),
    ("eve", "Eve", "staff", "active", "tom", "5555", "e-58", 300, "2026-02-11", "2026-09-09"),
    ("mia", "Mia", "staff", "active", "tom", "6666", "m-64", 500, "2026-04-30", "2026-11-25"),
    ("tom", "Tom", "staff", "active", "tom", "7777", "t-70", 900, "2022-01-01", "2026-02-02"),
]
SYSTEMS = [
    ("wiki", "open", "mia", 5, None),
    ("crm", "internal", "mia", 40, None),
    ("design", "internal", "eve", 90, None),
    ("payroll", "secret", "tom", 30, "audit"),
    ("audit", "secret", "tom", 30, "payroll"),
]
ACCESSES = [
    ("ada", "crm", "2026-12-10"),
    ("ben", "crm", "2026-12-01"),
    ("cem", "wiki", "2027-06-30"),
    ("eve", "audit", "2027-01-31"),
    ("mia", "design", "2026-12-26"),
]
APPROVALS = [
    ("ada", "payroll", "mia"),
    ("ada", "design", "mia"),
    ("ben", "payroll", "mia"),
    ("cem", "crm", "mia"),
    ("cem", "payroll", "mia"),
    ("eve", "crm", "mia"),
    ("eve", "payroll", "tom"),
    ("mia", "crm", "tom"),
]
DEVICES = [
    ("L1", None, 1, "in stock"),
    ("L2", None, 0, "in stock"),
    ("L3", None, 1, "stolen"),
    ("L4", "eve", 1, "in use"),
    ("L5", "mia", 1, "in use"),
    ("L6", "mia", 1, "in use"),
    ("L7", "mia", 1, "in use"),
]


def fill(database: sqlite3.Connection) -> None:
    """Make the tables, and put the example data into them."""
    database.executescript(SCHEMA)
    for table, rows in [
        ("employee", EMPLOYEES),
        ("system", SYSTEMS),
        ("access", ACCESSES),
        ("approval", APPROVALS),
        ("device", DEVICES),
    ]:
        places = ", ".join("?" * len(rows[0]))
        database.executemany(f"INSERT INTO {table} VALUES ({places})", rows)
    database.commit()


def example_database() -> sqlite3.Connection:
    """A database in memory with the example data."""
    database = sqlite3.connect(":memory:", check_same_thread=False)
    fill(database)
    return database


def make_toolkit(database: sqlite3.Connection) -> Toolkit:
    """The tools over a database."""
    database.row_factory = sqlite3.Row

    def rows(query: str, *values: Any) -> list[dict[str, Any]]:
        return [dict(row) for row in database.execute(query, values)]

    def row(query: str, *values: Any) -> dict[str, Any] | None:
        return next(iter(rows(query, *values)), None)

    def write(query: str, *values: Any) -> bool:
        with database:
            return database.execute(query, values).rowcount > 0

    @tool
    def today() -> str:
        """What day it is."""
        return TODAY

    @tool
    def find_employee(employee_id: str) -> dict[str, Any] | None:
        """An employee, without PIN and code."""
        return row(
            "SELECT employee_id, name, kind, status, manager, budget, training_day, reset_day "
            "FROM employee WHERE employee_id = ?",
            employee_id,
        )

    @tool
    def find_system(system: str) -> dict[str, Any] | None:
        """A system."""
        return row("SELECT * FROM system WHERE system = ?", system)

    @tool
    def find_access(employee_id: str, system: str) -> dict[str, Any] | None:
        """The access of an employee to a system."""
        return row("SELECT * FROM access WHERE employee_id = ? AND system = ?", employee_id, system)

    @tool
    def list_access(employee_id: str) -> list[dict[str, Any]]:
        """All that an employee has access to, with prices."""
        return rows(
            "SELECT system, until_day, price FROM access JOIN system USING (system) WHERE employee_id = ?", employee_id
        )

    @tool
    def find_approval(employee_id: str, system: str) -> dict[str, Any] | None:
        """Who has approved an access."""
        return row("SELECT * FROM approval WHERE employee_id = ? AND system = ?", employee_id, system)

    @tool
    def find_device(serial: str) -> dict[str, Any] | None:
        """A device of the inventory."""
        found = row("SELECT * FROM device WHERE serial = ?", serial)
        return found and {**found, "encrypted": bool(found["encrypted"])}

    @tool
    def list_devices(employee_id: str) -> list[dict[str, Any]]:
        """The devices of an employee."""
        return rows("SELECT serial FROM device WHERE owner = ?", employee_id)

    @tool
    def verify_pin(employee_id: str, pin: str) -> bool:
        """Verify an employee by their PIN."""
        return row("SELECT 1 FROM employee WHERE employee_id = ? AND pin = ?", employee_id, pin) is not None

    @tool
    def close_session(employee_id: str) -> bool:
        """End the session of an employee."""
        return True

    @tool
    def send_code(employee_id: str) -> bool:
        """Send a code to the phone on record."""
        return row("SELECT 1 FROM employee WHERE employee_id = ?", employee_id) is not None

    @tool
    def confirm_code(employee_id: str, code: str) -> bool:
        """Compare the code that an employee repeats."""
        return row("SELECT 1 FROM employee WHERE employee_id = ? AND code = ?", employee_id, code) is not None

    @tool
    def sign_exception(employee_id: str, system: str) -> bool:
        """Sign an exception of the security officer."""
        return True

    @tool
    def grant_access(employee_id: str, system: str, until_day: str) -> bool:
        """Give an employee access to a system."""
        return write("INSERT INTO access VALUES (?, ?, ?)", employee_id, system, until_day)

    @tool
    def extend_access(employee_id: str, system: str, until_day: str) -> bool:
        """Move the end of an access."""
        return write(
            "UPDATE access SET until_day = ? WHERE employee_id = ? AND system = ?", until_day, employee_id, system
        )

    @tool
    def revoke_access(requester_id: str, employee_id: str, system: str) -> bool:
        """Take an access away."""
        return write("DELETE FROM access WHERE employee_id = ? AND system = ?", employee_id, system)

    @tool
    def reset_password(employee_id: str) -> bool:
        """Send a new password."""
        return write("UPDATE employee SET reset_day = ? WHERE employee_id = ?", TODAY, employee_id)

    @tool
    def register_device(employee_id: str, serial: str) -> bool:
        """Register a device for an employee."""
        return write("UPDATE device SET owner = ?, state = 'in use' WHERE serial = ?", employee_id, serial)

    @tool
    def report_access(requester_id: str, employee_id: str) -> list[dict[str, Any]]:
        """Tell what an employee has access to."""
        return rows("SELECT system, until_day FROM access WHERE employee_id = ? ORDER BY system", employee_id)

    return Toolkit(
        [
            today,
            find_employee,
            find_system,
            find_access,
            list_access,
            find_approval,
            find_device,
            list_devices,
            verify_pin,
            close_session,
            send_code,
            confirm_code,
            sign_exception,
            grant_access,
            extend_access,
            revoke_access,
            reset_password,
            register_device,
            report_access,
        ]
    )


toolkit = make_toolkit(example_database())
