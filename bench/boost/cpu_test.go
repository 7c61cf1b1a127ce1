package boost

import (
	"strings"
	"testing"
)

func TestAgentsAreComparedWithEachRelayThatIsThere(t *testing.T) {
	of := func(name string, bytes ...float64) contender {
		c := contender{name: name}
		for _, v := range bytes {
			c.all = append(c.all, outcome{value: v})
		}
		return c
	}
	plain, sealed := of("plain", 1.4e9, 1.5e9), of("sealed", 0.7e9, 0.8e9)
	rows := costRows(&plain, &sealed, []*relay{
		{contender: of("socat", 1e9, 1e9), aim: ">= 1.4"},
		{contender: of("splice relay", 2e9, 2e9), aim: ">= 0.85", plainOnly: true},
	})
	want := []struct {
		name, aim string
		value     float64
		met       bool
	}{
		{"plain: bytes per agent CPU-second, of socat's", ">= 1.4", 1.45, true},
		{"sealed: bytes per agent CPU-second, of socat's", ">= 1.4", 0.75, false},
		{"plain: bytes per agent CPU-second, of splice relay's", ">= 0.85", 0.725, false},
		{"sealed: bytes per agent CPU-second, of splice relay's", "", 0.375, true},
		{"plain: per agent core", ">= 11", 11.6, true},
		{"sealed: per agent core", "", 6, true},
	}
	for i, w := range want {
		if r := rows[i]; !strings.HasSuffix(r.Name, w.name) || r.Aim != w.aim || r.Value != w.value || r.Met != w.met {
			t.Errorf("%+v, want %+v", r, w)
		}
	}
	if len(rows) != len(want) {
		t.Errorf("%d rows, want %d", len(rows), len(want))
	}
}
