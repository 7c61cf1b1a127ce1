package flow

import "testing"

// The reference vector of eight bytes: key 00..0f, message 00..07 (Aumasson, Bernstein, SipHash-2-4).
func TestSipHashVector(t *testing.T) {
	key := [2]uint64{0x0706050403020100, 0x0f0e0d0c0b0a0908}
	if got, want := sipHash(key, 0x0706050403020100), uint64(0x93f5f5799a932462); got != want {
		t.Errorf("SipHash %#x, want %#x", got, want)
	}
}

func TestIDsDifferByCPUAndTurn(t *testing.T) {
	a, b := IDs{CPU: 1}, IDs{CPU: 2}
	seen := map[any]bool{}
	for range 1000 {
		seen[a.New()], seen[b.New()] = true, true
	}
	if len(seen) != 2000 {
		t.Errorf("%d different socketIDs of 2000", len(seen))
	}
}
