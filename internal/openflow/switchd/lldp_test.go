package switchd

import (
	"testing"

	"pgregory.net/rapid"

	_ "scaffold.dev/scaffold/internal/tests/seed" // property tests draw the same each time in make test
)

func TestAnAdvertisementIsReadBackByItsMakerAlone(t *testing.T) {
	ours, theirs := &seal{1}, &seal{2}
	rapid.Check(t, func(t *rapid.T) {
		name := rapid.StringMatching("[a-z0-9-]{1,63}")
		want := advertisement{name.Draw(t, "router"), name.Draw(t, "port"), [6]byte{2, 0, 0, 0, 0, 7}, rapid.Uint64().Draw(t, "made")}
		frame := want.append(nil, ours)
		if got, err := parseAdvertisement(frame, ours); err != nil || got != want {
			t.Fatalf("got %v, %v, want %v", got, err, want)
		}
		if got, err := parseAdvertisement(frame, theirs); err == nil {
			t.Fatalf("another's %v was believed", got)
		}
		frame[rapid.IntRange(6, len(frame)-3).Draw(t, "at")] ^= byte(rapid.IntRange(1, 255).Draw(t, "flip"))
		if got, err := parseAdvertisement(frame, ours); err == nil && got != want {
			t.Fatalf("an altered one was believed: %v", got)
		}
	})
}

func FuzzAdvertisement(f *testing.F) {
	s := &seal{3}
	f.Add(advertisement{"s1", "to-s2", [6]byte{2}, 7}.append(nil, s))
	f.Fuzz(func(t *testing.T, b []byte) {
		a, err := parseAdvertisement(b, s)
		if err == nil && (a.router == "" || a.port == "") {
			t.Errorf("%x gave %v", b, a)
		}
	})
}
