package stripe_test

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"time"

	"scaffold.dev/scaffold/internal/boost/frame"
	"scaffold.dev/scaffold/internal/core/stripe"
)

// A driver reads from one socket, the client's, and writes to another one, the server's, over a trunk of two connections.
// Here all of them are buffers; each part of the loop is what a real driver does when a socket is ready, with one lock
// around the engines.
func Example() {
	client, server := strings.NewReader(strings.Repeat("all that the client says. ", 10_000)), new(bytes.Buffer)
	trunk, back := [2]bytes.Buffer{}, bytes.Buffer{} // data one way, STATE the other

	const session = 2
	now := time.Unix(0, 0)
	strategy, _ := stripe.StrategyNamed("pull")
	sender, receiver := stripe.NewSender(1<<20, strategy), stripe.NewReceiver(64, 50*time.Millisecond)
	memory := make([]byte, 64*stripe.Block)
	credit, _ := receiver.Open(session, 0) // what OPEN or OPENED tells
	if err := sender.Open(session, 0, credit); err != nil {
		fmt.Println(err)
		return
	}
	for c := range trunk {
		sender.Connect(stripe.Conn(c), stripe.Measure{RTT: 50 * time.Millisecond})
	}

	slots, read, number, ended := map[uint32][]byte{}, uint64(0), uint32(0), false
	for !sender.Ended(session) {
		now = now.Add(time.Millisecond)

		// The client's socket can be read, and there is room: its bytes become a chunk in a slot.
		if room := sender.Room(session); room > 0 && !ended {
			slot := make([]byte, min(room, stripe.MinChunk))
			n, err := client.Read(slot)
			if n > 0 {
				slots[number] = slot
				sender.Push(session, stripe.Chunk{Offset: read, Length: uint32(n), Slot: number})
				read, number = read+uint64(n), number+1
			}
			if err == io.EOF {
				sender.End(session)
				ended = true
			}
		}

		// The connections have room: each takes what comes next.
		for c := range trunk {
			if f, ok := sender.Next(now, stripe.Conn(c)); ok {
				trunk[c].Write(f.Header.Append(nil))
				if f.Type == frame.TypeData {
					trunk[c].Write(slots[f.Chunk.Slot][f.Chunk.At:][:f.Length])
				}
			}
		}

		// At the other agent the connections can be read: header, payload, and then its places.
		for c := range trunk {
			if trunk[c].Len() == 0 {
				continue
			}
			h, err := frame.ParseHeader(trunk[c].Next(frame.HeaderLen))
			payload := trunk[c].Next(int(h.Length))
			var places []stripe.Place
			switch {
			case err != nil:
			case h.Type == frame.TypeData:
				places, err = receiver.Arrive(now, h, nil)
			case h.Type == frame.TypeEnd:
				err = receiver.End(now, h)
			}
			if err != nil { // the connection is to be ended; the error names what the peer did
				fmt.Println(err)
				return
			}
			for _, p := range places {
				copy(memory[p.Block*stripe.Block+p.At:][:p.Length], payload[p.InPacket:])
			}
		}

		// The server's socket takes more, and what the kernel says that the server has acknowledged is passed on.
		ready := receiver.Deliver(session, make([]stripe.Place, 0, 8))
		n := 0
		for _, p := range ready.Places {
			m, _ := server.Write(memory[p.Block*stripe.Block+p.At:][:p.Length])
			n += m
		}
		receiver.Delivered(now, session, n)
		receiver.Acknowledged(now, session, uint64(server.Len()), ready.End)

		// STATE goes before all else on the way back.
		if state, ok := receiver.Next(now); ok {
			back.Write(state.Append(nil))
		}
		if back.Len() > 0 {
			h, _ := frame.ParseHeader(back.Next(frame.HeaderLen))
			state, err := frame.ParseState(h, back.Next(int(h.Length)), nil)
			if err == nil {
				err = sender.State(&state)
			}
			if err != nil {
				fmt.Println(err)
				return
			}
		}
		for _, slot := range sender.Freed() {
			delete(slots, slot)
		}
	}
	sender.Close(session) // once RETIRE was sent and heard
	receiver.Close(session)
	fmt.Println(server.Len(), "bytes arrived,", len(slots), "slots and", receiver.Reserved(), "blocks are in use")
	// Output: 260000 bytes arrived, 0 slots and 0 blocks are in use
}
