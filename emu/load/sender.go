package load

import (
	"encoding/binary"
	"net/netip"
	"time"

	"scaffold.dev/scaffold/emu"
	"scaffold.dev/scaffold/emu/traffic"
	"scaffold.dev/scaffold/internal/packet/header"
)

// A message follows the UDP header: the number of a packet and when it was sent; an answer has the mark besides.
const (
	atMessage  = 48 // of IPv6
	messageLen = 17
	hops       = 64
	leastSize  = atMessage + messageLen
)

// A Sender sends datagrams of IPv6 to a Receiver out of its port 0, as many as its window allows, as soon as it may.
type Sender struct {
	Window
	From, To netip.Addr
	Size     int           // bytes from the IP header on; at least 65
	Begin    time.Duration // when it sends first
	End      time.Duration // when it sends last; 0 is never

	Sent, Answers, Losses uint64

	text  []byte
	next  uint64 // number of the next packet
	done  uint64 // packets below are answered or lost
	heard time.Duration
}

// silence is after how long without an answer all that is under way counts as lost.
const silence = time.Second

// Wake sends what may be sent, and looks for silence.
func (s *Sender) Wake(r *emu.Router, now time.Duration) time.Duration {
	switch {
	case s.End > 0 && now >= s.End:
		return emu.Never
	case now < s.Begin:
		s.heard = s.Begin
		return s.Begin
	case now >= s.heard+silence && s.next > s.done:
		s.Losses += s.next - s.done
		s.done, s.heard = s.next, now
		s.Silent()
	}
	s.fill(r)
	return now + silence/4
}

// fill sends up to the window.
func (s *Sender) fill(r *emu.Router) {
	if r.Now() < s.Begin || s.End > 0 && r.Now() >= s.End {
		return
	}
	if s.text == nil {
		s.text = traffic.Datagram(s.From, s.To, hops, 1024, max(s.Size, leastSize))
		s.text[atMessage-2], s.text[atMessage-1] = 0, 0 // the message is another one each time: nobody looks at the sum
		s.text[1] |= byte(Low) << 4
	}
	for s.next-s.done < uint64(s.Packets()) {
		binary.BigEndian.PutUint64(s.text[atMessage:], s.next)
		binary.BigEndian.PutUint64(s.text[atMessage+8:], uint64(r.Now()))
		p, ok := r.New(s.text)
		if !ok {
			return
		}
		r.Send(p, 0)
		s.next++
		s.Sent++
	}
}

// Process takes answers. The path keeps the order of packets: one that was passed over is lost.
func (s *Sender) Process(r *emu.Router, batch []emu.Packet) {
	for i := range batch {
		b := r.Bytes(&batch[i])
		batch[i].Port = emu.Drop
		if len(b) < leastSize {
			continue
		}
		number, sent := binary.BigEndian.Uint64(b[atMessage:]), time.Duration(binary.BigEndian.Uint64(b[atMessage+8:]))
		if number < s.done || number >= s.next {
			continue // given up meanwhile
		}
		if number > s.done {
			s.Losses += number - s.done
			s.Lost(r.Now())
		}
		s.done, s.heard = number+1, r.Now()
		s.Answers++
		s.Answered(r.Now(), r.Now()-sent, Level(b[atMessage+16]))
	}
	s.fill(r)
}

// A Receiver answers the datagrams of Senders by port 0, with the load that each met, and counts their bytes.
type Receiver struct {
	Bytes map[netip.Addr]uint64 // from the IP header on, by sender
}

// Process answers.
func (x *Receiver) Process(r *emu.Router, batch []emu.Packet) {
	if x.Bytes == nil {
		x.Bytes = map[netip.Addr]uint64{}
	}
	for i := range batch {
		b := r.Bytes(&batch[i])
		batch[i].Port = emu.Drop
		if !batch[i].IPv6() || len(b) < leastSize {
			continue
		}
		from, to := header.IPv6(b).Src(), header.IPv6(b).Dst()
		x.Bytes[from] += uint64(batch[i].Len())
		answer := traffic.Datagram(to, from, hops, 1024, leastSize)
		answer[atMessage-2], answer[atMessage-1] = 0, 0
		copy(answer[atMessage:], b[atMessage:atMessage+16])
		answer[atMessage+16] = byte(levelIn(b, true))
		if p, ok := r.New(answer); ok {
			r.Send(p, 0)
		}
	}
}
