package boost

import (
	"math"
	"testing"
)

const trunkBefore = `ESTAB 0 0 10.95.0.1:40000 10.95.0.2:23731
	 bbr wscale:10,10 rto:260 bytes_sent:1000 bytes_retrans:100 bytes_acked:900
ESTAB 0 0 10.95.0.1:40001 10.95.0.2:23731
	 bbr wscale:10,10 rto:260 bytes_sent:500 bytes_acked:500
`

const trunkAfter = `ESTAB 0 0 10.95.0.1:40000 10.95.0.2:23731
	 bbr wscale:10,10 rto:260 bytes_sent:3000 bytes_retrans:300 bytes_acked:2700
ESTAB 0 0 10.95.0.1:40001 10.95.0.2:23731
	 bbr wscale:10,10 rto:260 bytes_sent:520 bytes_acked:520
ESTAB 0 0 10.95.0.1:40002 10.95.0.2:23731
	 bbr wscale:10,10 rto:260 bytes_sent:1880 bytes_retrans:680 bytes_acked:900
`

func TestWhatTCPSendsAgainIsNotTheAgents(t *testing.T) {
	each := gave(trunkSent(trunkBefore), trunkSent(trunkAfter)) // 1800, 20 and 1200
	if got := beyond(each, 3000); math.Abs(got-100*20./3000) > 1e-9 {
		t.Errorf("%v %% of 3000 bytes; the connections were given %v", got, each)
	}
	if n := senders(each); n != 2 {
		t.Errorf("%d connections carried the stream; they were given %v", n, each)
	}
	if n := senders(nil); n != 0 {
		t.Errorf("%d of none", n)
	}
}
