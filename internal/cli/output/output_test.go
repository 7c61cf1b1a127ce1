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
