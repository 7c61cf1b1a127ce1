package bpftest

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/btf"
)

var update = flag.Bool("update", false, "write the golden file of a layout version that has none yet")

// HoldLayout compares the pinned maps of a program, keys and values field by field, with what is committed of the
// layout's version. A file is written once for each version (-update): who changes a layout raises the version, as
// hint says, or a daemon would read what another one left in other words.
func HoldLayout(t testing.TB, spec *ebpf.CollectionSpec, pinned []string, version int, hint string) {
	t.Helper()
	file := filepath.Join("testdata", fmt.Sprintf("layout-%d.txt", version))
	got := layouts(spec, pinned)
	want, err := os.ReadFile(file)
	switch {
	case errors.Is(err, os.ErrNotExist) && *update:
		if err := errors.Join(os.MkdirAll("testdata", 0o755), os.WriteFile(file, []byte(got), 0o644)); err != nil {
			t.Fatal(err)
		}
	case err != nil:
		t.Fatalf("%v\nhint: go test -run %s -update writes it", err, t.Name())
	case string(want) != got:
		t.Errorf("the layout of pinned maps is not that of version %d, %s:\n%s\nhint: %s", version, file, differ(string(want), got), hint)
	}
}

// layouts is the text of what lies in the maps, in the order of their names.
func layouts(spec *ebpf.CollectionSpec, pinned []string) string {
	var b strings.Builder
	for _, name := range slices.Sorted(slices.Values(pinned)) {
		m := spec.Maps[name]
		if m == nil {
			fmt.Fprintf(&b, "%s: none\n", name)
			continue
		}
		fmt.Fprintf(&b, "%s: %v, flags %#x, key %d bytes, value %d bytes\n", name, m.Type, m.Flags, m.KeySize, m.ValueSize)
		describe(&b, "key", 0, m.Key)
		describe(&b, "value", 0, m.Value)
	}
	return b.String()
}

// describe writes one line for each field that holds no others.
func describe(b *strings.Builder, path string, at uint32, typ btf.Type) {
	if typ == nil {
		return
	}
	switch t := btf.UnderlyingType(typ).(type) {
	case *btf.Struct:
		for _, m := range t.Members {
			describe(b, path+"."+m.Name, at+m.Offset.Bytes(), m.Type)
		}
	case *btf.Array:
		if inner, ok := btf.UnderlyingType(t.Type).(*btf.Struct); ok {
			describe(b, fmt.Sprintf("%s[of %d]", path, t.Nelems), at, inner)
			return
		}
		size, _ := btf.Sizeof(t) // of an array of scalars
		fmt.Fprintf(b, "  %4d %4d %s, %d of them\n", at, size, path, t.Nelems)
	default:
		size, _ := btf.Sizeof(t) // 0 where it has none
		fmt.Fprintf(b, "  %4d %4d %s\n", at, size, path)
	}
}

// differ lists the lines that only one of the two texts has.
func differ(want, got string) string {
	var b strings.Builder
	lines := func(s string) []string { return strings.Split(strings.TrimSpace(s), "\n") }
	for _, d := range []struct {
		sign    string
		of, not []string
	}{{"-", lines(want), lines(got)}, {"+", lines(got), lines(want)}} {
		for _, line := range d.of {
			if !slices.Contains(d.not, line) {
				fmt.Fprintf(&b, "%s %s\n", d.sign, line)
			}
		}
	}
	return b.String()
}
