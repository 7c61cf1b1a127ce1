package host

import (
	"testing"
	"time"

	"scaffold.dev/scaffold/internal/bpf/bpftest"
	"scaffold.dev/scaffold/sid"
)

func TestSilentConnectionsAreThoseThatNobodyEndedOrUsed(t *testing.T) {
	w := newWorld(t)
	lost := connect(t, w, 4000, 100)
	bind(t, w, lost, peerP, 4000, 100)
	used := connect(t, w, 4001, 100)
	bind(t, w, used, peerQ, 4001, 100)
	over := connect(t, w, 4002, 100)
	bind(t, w, over, peerQ, 4002, 100)
	w.send(udp(vid, dnsAddr, 5000, 53, "q").Bytes())
	w.send(tcp(vid, webAddr, 4002, 80, bpftest.FIN|bpftest.ACK, 101, 901).Bytes())
	older(t, w.edge, silentFor+time.Second)
	w.arrive(tcp(peerQ, used, 80, 4001, bpftest.ACK, 901, 101).Bytes())
	list, err := w.edge.Silent()
	if err != nil || len(list) != 1 || list[0].Tuple.Local.Port() != 4000 {
		t.Fatalf("%+v %v, want the connection from port 4000", list, err)
	}
	w.arrive(tcp(peerP, lost, 80, 4000, bpftest.ACK, 901, 101).Bytes()) // it is not silent any more
	if n, err := w.edge.SweepSilent(list); n != 0 || err != nil {
		t.Errorf("%d removed of a connection that spoke, %v", n, err)
	}
	older(t, w.edge, silentFor+time.Second)
	if n, err := w.edge.SweepSilent(list); n != 1 || err != nil {
		t.Errorf("%d removed, %v", n, err)
	}
	if _, ok, _ := w.edge.Flow(sid.SocketID(sid.Low(lost))); ok {
		t.Error("its socketID is there still")
	}
}
