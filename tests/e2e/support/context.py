"""A context of the native API, and what is run in it."""


class Context:
    def __init__(self, box, language="python", kind="contexts", **fields):
        self.api, self.box = box.api, box
        if kind == "contexts":
            fields["language"] = language
        self.value = self.api.post(f"{box.path}/{kind}", fields).must(201).json
        self.id = self.value["contextId"]
        self.path = f"{box.path}/{kind}/{self.id}"
        self.field = "code" if kind == "contexts" else "command"

    def ask(self, code, **fields):
        return self.api.post(f"{self.path}/run", {self.field: code, **fields})

    def run(self, code, **fields):
        return self.ask(code, **fields).must(200).json

    def value_of(self, code, **fields):
        """The text of the last expression's value."""
        answer = self.run(code, **fields)
        assert answer["status"] == "ok", answer
        main = [r for r in answer["results"] if r["isMain"]]
        assert len(main) == 1, answer
        return main[0]["text"]

    def state(self):
        return self.api.get(self.path).must(200).json
