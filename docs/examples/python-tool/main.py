#!/usr/bin/env python3
"""Outlines a Python file: its classes and functions with their lines. The standard library is enough."""
import ast
import json
import os
import sys


def send(**frame):
    print(json.dumps({"jsonrpc": "2.0", **frame}), flush=True)


def outline(path):
    with open(path, encoding="utf-8") as file:
        tree = ast.parse(file.read())
    lines = []

    def walk(node, depth):
        for child in ast.iter_child_nodes(node):
            if isinstance(child, (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
                kind = "class" if isinstance(child, ast.ClassDef) else "def"
                lines.append(f"{child.lineno}: {'  ' * depth}{kind} {child.name}")
                walk(child, depth + 1)

    walk(tree, 0)
    return "\n".join(lines) or "no classes or functions"


def call(params):
    path = os.path.join(params["cwd"], params["arguments"]["path"])
    try:
        return {"content": outline(path)}
    except (OSError, SyntaxError, ValueError) as error:
        # The model reads this and can do something about it.
        return {"content": f"cannot outline the file: {error}", "is_error": True}


for line in sys.stdin:
    if not line.strip():
        continue
    frame = json.loads(line)
    method, id = frame.get("method"), frame.get("id")
    if method == "plugin/shutdown":
        break
    if method is None or id is None:
        continue  # an answer or a notification
    if method == "plugin/initialize":
        send(id=id, result={"protocol_version": "0.1.0", "name": "python_outline", "version": "1.0.0"})
    elif method == "plugin/tools/call":
        try:
            send(id=id, result=call(frame["params"]))
        except Exception as error:
            send(id=id, error={"code": -32000, "message": str(error), "data": {"code": "execution_failed"}})
    else:
        send(id=id, error={"code": -32601, "message": "no such method"})
