// Schema writes the calls and messages of lab.proto as tables, for the clients that nothing else is generated for: the
// one in Python, which uses its standard library alone, and the web view. Its arguments are the files to write; their
// names say the language.
package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"google.golang.org/protobuf/reflect/protoreflect"

	labv1 "scaffold.dev/scaffold/internal/lab/v1"
)

// A language is what stands around the tables; the tables themselves are the same in all.
type language struct{ begin, calls, messages, end string }

var languages = map[string]language{
	".py": {
		begin: `"""The calls of the lab's API and their messages: generated from internal/lab/v1/lab.proto, not to be edited."""

from typing import Dict, List

SERVICE = %q

#: What each call takes and answers with.
`,
		calls: "CALLS: Dict[str, List[str]] = {\n",
		messages: `}

#: The fields of each message with their types; those of a list are its elements'.
MESSAGES: Dict[str, Dict[str, str]] = {
`,
		end: "}\n",
	},
	".js": {
		begin: `// The calls of the lab's API and their messages: generated from internal/lab/v1/lab.proto, not to be edited.

export const service = %q;

// What each call takes and answers with.
`,
		calls: "export const calls = {\n",
		messages: `};

// The fields of each message with their types; those of a list are its elements'.
export const messages = {
`,
		end: "};\n",
	},
}

func main() {
	for _, path := range os.Args[1:] {
		if err := os.WriteFile(path, []byte(tables(labv1.File_lab_proto, path)), 0o644); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
}

// tables is the text of a file.
func tables(schema protoreflect.FileDescriptor, path string) string {
	var b strings.Builder
	in, service := languages[filepath.Ext(path)], schema.Services().Get(0)
	fmt.Fprintf(&b, in.begin, service.FullName())
	b.WriteString(in.calls)
	for i := range service.Methods().Len() {
		m := service.Methods().Get(i)
		fmt.Fprintf(&b, "    %q: [%q, %q],\n", m.Name(), m.Input().Name(), m.Output().Name())
	}
	b.WriteString(in.messages)
	for i := range schema.Messages().Len() {
		writeMessage(&b, schema.Messages().Get(i))
	}
	b.WriteString(in.end)
	return b.String()
}

func writeMessage(b *strings.Builder, m protoreflect.MessageDescriptor) {
	if m.Fields().Len() == 0 {
		fmt.Fprintf(b, "    %q: {},\n", m.Name())
		return
	}
	fmt.Fprintf(b, "    %q: {\n", m.Name())
	for i := range m.Fields().Len() {
		f := m.Fields().Get(i)
		fmt.Fprintf(b, "        %q: %q,\n", f.Name(), kind(f))
	}
	b.WriteString("    },\n")
}

// kind is the type of a field: a message's name, and its full name where it is of another schema.
func kind(f protoreflect.FieldDescriptor) string {
	m := f.Message()
	switch {
	case f.IsMap():
		return "map"
	case m == nil:
		return f.Kind().String()
	case m.ParentFile() != f.ParentFile():
		return string(m.FullName())
	}
	return string(m.Name())
}
