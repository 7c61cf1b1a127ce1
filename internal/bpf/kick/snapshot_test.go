package kick

import (
	"errors"
	"io"
	"net"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// What the socket itself says, to whoever holds it, is the measure.
func TestStateIsWhatTheSocketSays(t *testing.T) {
	w := newWorld(t)
	c := w.connect()
	exchange(t, c.mover, c.other, "hello")
	exchange(t, c.other, c.mover, "hello you")
	k := openIn(t, w.mover)
	if _, err := io.WriteString(c.other, "unread"); err != nil {
		t.Fatal(err)
	}
	s := await(t, k, c.mover, "holding six unread bytes", func(s Socket) bool { return s.Unread() == 6 })
	said := ask(t, c.mover)
	if got := [...]uint32{s.Written, s.RcvNxt}; got != said.sequence {
		t.Errorf("write and receive sequence %v, the socket says %v", got, said.sequence)
	}
	i := said.info
	for what, v := range map[string][2]uint64{
		"state": {uint64(s.State), uint64(i.State)}, "mss": {uint64(s.MSS), uint64(i.Snd_mss)},
		"advertised mss": {uint64(s.AdvMSS), uint64(i.Advmss)}, "window": {uint64(s.SndWnd), uint64(i.Snd_wnd)},
		"bytes received": {s.BytesReceived, i.Bytes_received}, "bytes acknowledged": {s.BytesAcked, i.Bytes_acked},
		"round trip": {uint64(s.SRTT / time.Microsecond), uint64(i.Rtt)}, "congestion window": {uint64(s.Cwnd), uint64(i.Snd_cwnd)},
		"window in repair":  {uint64(s.SndWnd), uint64(said.window.SndWnd)},
		"largest window":    {uint64(s.MaxWnd), uint64(said.window.MaxWindow)},
		"window update":     {uint64(s.SndWl1), uint64(said.window.SndWl1)},
		"own window":        {uint64(s.RcvWnd), uint64(said.window.RcvWnd)},
		"own window update": {uint64(s.RcvWup), uint64(said.window.RcvWup)},
		"timeout":           {uint64(s.RTO / time.Microsecond), uint64(i.Rto)},
	} {
		if v[0] != v[1] {
			t.Errorf("%s is %d, the socket says %d", what, v[0], v[1])
		}
	}
	if !s.SACK || !s.Timestamps || !s.WindowScale || s.SndShift == 0 || s.RcvShift == 0 || s.TSRecent == 0 || !s.Sequenced || s.Gaps {
		t.Errorf("options: %+v", s)
	}
}

// saying is what a socket tells its holder.
type saying struct {
	info     *unix.TCPInfo
	sequence [2]uint32 // of the send and the receive queue
	window   repairWindow
}

// repairWindow is struct tcp_repair_window of linux/tcp.h.
type repairWindow struct{ SndWl1, SndWnd, MaxWindow, RcvWnd, RcvWup uint32 }

func ask(t *testing.T, c *net.TCPConn) (s saying) {
	t.Helper()
	raw, err := c.SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	var failed error
	err = raw.Control(func(p uintptr) { failed = s.fill(int(p)) })
	if err := errors.Join(err, failed); err != nil {
		t.Fatalf("ask the socket: %v", err)
	}
	return s
}

func (s *saying) fill(fd int) (err error) {
	if s.info, err = unix.GetsockoptTCPInfo(fd, unix.IPPROTO_TCP, unix.TCP_INFO); err != nil {
		return err
	}
	if err := unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_REPAIR, 1); err != nil {
		return err
	}
	defer unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_REPAIR, -1) // off, and no window probe
	// TCP_SEND_QUEUE and TCP_RECV_QUEUE of linux/tcp.h
	for i, queue := range []int{2, 1} {
		if err := unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_REPAIR_QUEUE, queue); err != nil {
			return err
		}
		n, err := unix.GetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_QUEUE_SEQ)
		if err != nil {
			return err
		}
		s.sequence[i] = uint32(n)
	}
	size := uint32(unsafe.Sizeof(s.window))
	_, _, errno := unix.Syscall6(unix.SYS_GETSOCKOPT, uintptr(fd), unix.IPPROTO_TCP, unix.TCP_REPAIR_WINDOW,
		uintptr(unsafe.Pointer(&s.window)), uintptr(unsafe.Pointer(&size)), 0)
	if errno != 0 {
		return errno
	}
	return nil
}
