package kick

import (
	"net/netip"
	"time"
)

// The flags of a record, as in record.h.
const (
	recordSACK = 1 << iota
	recordWScale
	recordTStamp
	recordTSUsec
	recordGaps
	recordRecvErr
	recordRepair
	recordMPTCP
)

// tuple is the record's name.
func (r *dumpRecord) tuple() Tuple {
	return Tuple{
		Local: netip.AddrPortFrom(netip.AddrFrom16(r.Local), r.LocalPort),
		Peer:  netip.AddrPortFrom(netip.AddrFrom16(r.Peer), r.PeerPort),
	}
}

// socket is the record in the units of Socket; a jiffy tells how long one is.
func (r *dumpRecord) socket(t Tuple, jiffy time.Duration) Socket {
	has := func(flag uint32) bool { return r.Flags&flag != 0 }
	return Socket{
		Tuple: t, Cookie: r.Cookie, At: time.Duration(r.Now), State: State(r.State), Sequenced: true,

		SndUna: r.SndUna, SndNxt: r.SndNxt, Written: r.WriteSeq,
		SndWnd: r.SndWnd, SndWl1: r.SndWl1, MaxWnd: r.MaxWindow,

		RcvNxt: r.RcvNxt, Copied: r.CopiedSeq, RcvWup: r.RcvWup, RcvWnd: r.RcvWnd, Gaps: has(recordGaps),

		SndShift: r.SndWscale, RcvShift: r.RcvWscale, WindowScale: has(recordWScale), SACK: has(recordSACK),
		Timestamps: has(recordTStamp), TSMicros: has(recordTSUsec),
		TSRecent: r.TsRecent, TSEcho: r.TsEcr, TSOffset: r.TsOffset,
		MSS: r.Mss, MSSClamp: r.MssClamp, AdvMSS: r.Advmss,

		Timer: Timer(r.Pending), Due: time.Duration(r.Due) * jiffy, Backoff: r.Backoff,
		Retransmits: r.Retransmits, Probes: r.Probes, RTO: time.Duration(r.Rto) * jiffy,
		SRTT:   time.Duration(r.Srtt) * time.Microsecond / 8,
		RTTVar: time.Duration(r.Rttvar) * time.Microsecond / 4,

		Cwnd: r.Cwnd, PacketsOut: r.PacketsOut, RetransOut: r.RetransOut, TotalRetrans: r.TotalRetrans,
		BytesAcked: r.BytesAcked, BytesReceived: r.BytesReceived,

		Congestion: r.CaState, ReadsICMP: has(recordRecvErr), Repair: has(recordRepair), MPTCP: has(recordMPTCP),
	}
}

// jiffyOf finds the kernel's tick from a moment on both of its clocks: jiffies began at 2^32 less five
// minutes of them, and CLOCK_MONOTONIC at zero.
func jiffyOf(now time.Duration, jiffies uint64) time.Duration {
	best, off := 0, time.Duration(1<<63-1)
	for _, hz := range []int{100, 250, 300, 1000, 24, 32, 48, 64, 128, 200, 256, 500, 1024, 1200} {
		ticks := int64(jiffies - (1<<32 - 300*uint64(hz)))
		by := (time.Duration(float64(ticks)/float64(hz)*1e9) - now).Abs()
		if by < off {
			best, off = hz, by
		}
	}
	return time.Second / time.Duration(best)
}
