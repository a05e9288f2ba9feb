"""Templates whose bodies are in an archive have no constraints: not all compilers make constraints a part of the name
that the linker uses (clang since 18 and g++ since 14 do), so programs of other compilers would not link."""

import re
import unittest

from installation import SOURCE

# The first ";" or "{" after a template's parameters ends its declaration, except for a requires-expression's braces.
PARTS = re.compile(r"requires\s*(?:\([^()]*\))?\s*\{|[(){};]")


def closing(text, start, opening, end):
    """Returns the position after the bracket that closes the one opened before `start`."""
    depth = 1
    while depth:
        depth += {opening: 1, end: -1}.get(text[start], 0)
        start += 1
    return start


def constrained_declarations(text):
    """Returns the declarations of constrained templates that have no body in a header."""
    text = re.sub(r"//[^\n]*", "", text)
    found = []
    for match in re.finditer(r"\btemplate <", text):
        begin = at = closing(text, match.end(), "<", ">")
        parameters = text[match.end():begin - 1]
        while (part := PARTS.search(text, at))[0] not in (";", "{"):
            at = part.end()
            if part[0].endswith("{"):
                at = closing(text, at, "{", "}")
            elif part[0] == "(":
                at = closing(text, at, "(", ")")
        declaration = " ".join(text[begin:part.start()].split())
        constrained = "requires" in declaration or re.search(r"(?:^|,\s*)[A-Z]\w* ", parameters)
        # Declarations that only carry a compiler's message, or represent a value at compile time, are never called.
        is_never_called = re.search(
            r"CADRE_(?:MISTAKE|DELETED|UNSUPPORTED_MEMBER|NO_[A-Z_]*FUNCTION)|\bconstexpr\b", declaration)
        if part[0] == ";" and constrained and not is_never_called and not declaration.startswith("concept"):
            found.append(declaration)
    return found


class ExportedTemplatesTest(unittest.TestCase):
    def test_templates_without_a_body_in_the_public_headers_are_not_constrained(self):
        headers = list((SOURCE / "include").rglob("*.h"))
        self.assertGreater(len(headers), 30)
        for header in headers:
            self.assertEqual(constrained_declarations(header.read_text(encoding="utf-8")), [],
                             f"{header}: give the user an inline template with the constraint, which calls one without")

    def test_constraints_are_recognised(self):
        self.assertEqual(constrained_declarations("template <Number T>\nT f(int a = {});"), ["T f(int a = {})"])
        self.assertEqual(constrained_declarations("template <class T> requires C<T>\nT f();"), ["requires C<T> T f()"])
        self.assertEqual(constrained_declarations("template <class T> T f() requires requires(T t) { t; };"),
                         ["T f() requires requires(T t) { t; }"])
        for accepted in ("template <class T> T f();", "template <Number T> T f() { return {}; }",
                         "template <class T> concept Number = requires(T t) { t; };"):
            self.assertEqual(constrained_declarations(accepted), [], accepted)


if __name__ == "__main__":
    unittest.main()
