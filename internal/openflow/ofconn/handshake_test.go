package ofconn

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"scaffold.dev/scaffold/internal/openflow/ofp"
)

func TestHandshakeRefuses(t *testing.T) {
	for _, c := range []struct {
		name   string
		script func(p *peer)
		want   error
		says   string
	}{
		{"a switch of 1.0", func(p *peer) {
			p.want(ofp.TypeHello)
			p.raw([]byte{1, 0, 0, 8, 0, 0, 0, 9})
			m := p.want(ofp.TypeError)
			if e := m.Body.(ofp.Error); m.Version != 1 || m.XID != 9 || e.Name() != "OFPHFC_INCOMPATIBLE" {
				p.t.Errorf("the switch is told %+v, want HELLO_FAILED in its version", m)
			}
		}, ErrVersion, "speaks OpenFlow 1.0, we speak OpenFlow 1.3 and OpenFlow 1.5"},
		{"a switch of 1.2 and 1.4", func(p *peer) {
			p.want(ofp.TypeHello)
			p.sayIn(5, 0, ofp.Hello{Versions: ofp.Versions(3, 5)})
			p.want(ofp.TypeError)
		}, ErrVersion, "OpenFlow 1.2 and OpenFlow 1.4"},
		{"a web browser", func(p *peer) { p.hear(); p.raw([]byte("GET / HTTP/1.1\r\n")) }, ErrVersion, "47 45 54 20"},
		{"zeros", func(p *peer) { p.hear(); p.raw(make([]byte, 64)) }, ofp.ErrVersion, ""},
		{"a HELLO cut off", func(p *peer) { p.hear(); p.raw([]byte{6, 0, 0, 16, 0, 0, 0, 0, 0, 1}) }, io.EOF, "hung up"},
		{"nothing, hanging up", func(p *peer) {}, io.EOF, "hung up"},
		{"nothing, for ever", func(p *peer) { io.Copy(io.Discard, p.nc) }, context.DeadlineExceeded, "no HELLO"},
		{"one that does not read", func(p *peer) { p.say(0, ofp.Hello{}); time.Sleep(time.Minute) }, context.DeadlineExceeded, ""},
		{"a byte now and then", func(p *peer) {
			for range 8 {
				time.Sleep(time.Second) // the bubble's
				p.raw([]byte{6})
			}
		}, context.DeadlineExceeded, ""},
		{"a refusal", func(p *peer) { p.hear(); p.say(0, ofp.Refusal("OFPHFC_EPERM")) }, ofp.Refusal("OFPHFC_EPERM"), ""},
		{"a HELLO and then nothing", func(p *peer) {
			p.hear()
			p.say(0, ofp.Hello{})
			io.Copy(io.Discard, p.nc)
		}, context.DeadlineExceeded, "features"},
		{"another answer", func(p *peer) {
			p.hear()
			p.say(0, ofp.Hello{})
			p.say(p.want(ofp.TypeFeaturesRequest).XID, ofp.BarrierReply{})
		}, ErrDamaged, "BARRIER_REPLY"},
		{"another version than agreed", func(p *peer) {
			p.hear()
			p.say(0, ofp.Hello{})
			p.sayIn(ofp.V13, p.want(ofp.TypeFeaturesRequest).XID, ofp.FeaturesReply{})
		}, ErrDamaged, "OpenFlow 1.3 after HELLOs that agreed on OpenFlow 1.5"},
	} {
		t.Run(c.name, func(t *testing.T) {
			pipe(t, Config{}, c.script, func(t *testing.T, conn *Conn, err error) {
				if !errors.Is(err, c.want) || !strings.Contains(err.Error(), c.says) {
					t.Errorf("New = %v; want %q that says %q", err, c.want, c.says)
				}
			})
		})
	}
}

func TestHandshakeAgrees(t *testing.T) {
	for _, c := range []struct {
		name   string
		ours   ofp.VersionBitmap
		hello  ofp.Message
		agreed ofp.Version
	}{
		{"both, the highest", 0, ofp.Message{Version: ofp.V15, Body: ofp.Hello{Versions: ofp.Versions(ofp.V13, ofp.V15)}}, ofp.V15},
		{"a switch of 1.3", 0, ofp.Message{Version: ofp.V13, Body: ofp.Hello{}}, ofp.V13},
		{"a controller of 1.3", ofp.Versions(ofp.V13), ofp.Message{Version: ofp.V15, Body: ofp.Hello{Versions: ofp.Versions(ofp.V13, ofp.V15)}}, ofp.V13},
	} {
		t.Run(c.name, func(t *testing.T) {
			pipe(t, Config{Versions: c.ours}, func(p *peer) {
				p.want(ofp.TypeHello)
				p.sayIn(c.hello.Version, 0, c.hello.Body)
				p.sayIn(c.agreed, 0, ofp.EchoRequest{Data: []byte("early")})
				heard := p.wantBoth(ofp.TypeFeaturesRequest, ofp.TypeEchoReply)
				p.sayIn(c.agreed, heard[0].XID, ofp.FeaturesReply{DatapathID: 1})
			}, func(t *testing.T, conn *Conn, err error) {
				if err != nil {
					t.Fatal(err)
				}
				if conn.Version() != c.agreed {
					t.Errorf("agreed on %v, want %v", conn.Version(), c.agreed)
				}
				<-conn.Done()
				conn.Close()
			})
		})
	}
}
