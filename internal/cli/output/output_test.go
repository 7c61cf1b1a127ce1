package output

import (
	"bytes"
	"testing"
	"time"
)

func TestDurationsReadAtAGlance(t *testing.T) {
	for want, d := range map[string]time.Duration{"20ms": 20 * time.Millisecond, "59s": 59 * time.Second, "1m05s": 65 * time.Second,
		"3h00m": 3 * time.Hour, "3d2h": 74 * time.Hour} {
		if got := Short(d); got != want {
			t.Errorf("Short(%v) = %q, want %q", d, got, want)
		}
	}
}

func TestTablesAreAlignedAndShowEmptyCells(t *testing.T) {
	var out bytes.Buffer
	Draw(&out, func(t *Table) {
		t.Row("NAME", "STATE", "FLOWS")
		t.Row("long-name", "", 3)
	})
	want := "NAME       STATE  FLOWS\nlong-name  -      3\n"
	if out.String() != want {
		t.Errorf("table:\n%s\nwant:\n%s", out.String(), want)
	}
}

func TestBytesAreReadable(t *testing.T) {
	for n, want := range map[uint64]string{0: "0 B", 999: "999 B", 1000: "1 kB", 1500: "1.5 kB", 999_499: "999 kB", 999_600: "1 MB", 200 << 20: "210 MB", 1<<64 - 1: "18.4 EB"} {
		if got := Bytes(n); got != want {
			t.Errorf("%d: %q, want %q", n, got, want)
		}
	}
}
