package boost

import "testing"

func TestWhatSocketsHoldIsWithoutTheirLimits(t *testing.T) {
	const text = `ESTAB 0 0 10.95.0.1:40000 10.95.0.2:23731 skmem:(r100,rb131072,t7,tb87040,f4000,w50,o8,bl2,d1)
ESTAB 0 0 10.95.0.1:40001 10.95.0.2:23731 skmem:(r0,rb131072,t0,tb87040,f0,w1000,o0,bl0,d0)
`
	if got := socketMemory(text); got != 5160 {
		t.Errorf("%v bytes, want 5160", got)
	}
}
