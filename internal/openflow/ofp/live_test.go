package ofp

import (
	"flag"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"scaffold.dev/scaffold/internal/tests/nstest"
)

var record = flag.Bool("record", false, "write "+recorded+" anew, from a real Open vSwitch")

// A tap stands between a switch and who talks to it, and keeps what both say.
type tap struct {
	mu   sync.Mutex
	said []recording
	seen map[string]bool // without transaction ids
}

// listen passes connections on to a switch until the test ends.
func (k *tap) listen(t *testing.T, at, to string) {
	t.Helper()
	l, err := net.Listen("unix", at)
	if err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	t.Cleanup(func() { l.Close(); all.Wait() })
	all.Go(func() {
		for {
			client, err := l.Accept()
			if err != nil {
				return
			}
			all.Go(func() { k.join(client, to) })
		}
	})
}

func (k *tap) join(client net.Conn, to string) {
	defer client.Close()
	conn, err := net.Dial("unix", to)
	if err != nil {
		return
	}
	defer conn.Close()
	var both sync.WaitGroup
	both.Go(func() { k.pass(conn, client, "to"); conn.Close() })
	both.Go(func() { k.pass(client, conn, "from"); client.Close() })
	both.Wait()
}

// pass copies whole messages until one of both ends closes.
func (k *tap) pass(dst io.Writer, src io.Reader, direction string) {
	for {
		b, err := readMessage(src)
		if err != nil {
			return
		}
		k.keep(direction, b)
		if _, err := dst.Write(b); err != nil {
			return
		}
	}
}

func readMessage(src io.Reader) ([]byte, error) {
	b := make([]byte, HeaderLen)
	if _, err := io.ReadFull(src, b); err != nil {
		return nil, err
	}
	h, err := ParseHeader(b)
	if err != nil {
		return nil, err
	}
	b = append(b, make([]byte, h.Len-HeaderLen)...)
	_, err = io.ReadFull(src, b[HeaderLen:])
	return b, err
}

// keep leaves out what was said before, and the features of 254 tables, which ovs-ofctl asks about.
func (k *tap) keep(direction string, b []byte) {
	h, _ := ParseHeader(b)
	same := fmt.Sprint(direction, string(b[:4]), string(b[8:]))
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.seen[same] || aboutTableFeatures(h, b) {
		return
	}
	k.seen[same] = true
	name := fmt.Sprintf("%s switch, %#02x, %v", direction, uint8(h.Version), h.Type)
	k.said = append(k.said, recording{name, append([]byte(nil), b...)})
}

func aboutTableFeatures(h Header, b []byte) bool {
	const tableFeatures = 12
	multipart := h.Type == TypeMultipartRequest || h.Type == TypeMultipartReply
	return multipart && len(b) > HeaderLen+1 && b[HeaderLen] == 0 && b[HeaderLen+1] == tableFeatures
}

// commands are what ovs-ofctl is told to say in both versions, with the switch in the place of %
// and its name in that of @.
var commands = []string{
	"add-flow % table=1,priority=7,cookie=0x5,idle_timeout=60,ipv6,ipv6_dst=fd5d::/64,actions=dec_ttl,set_field:02:00:00:00:00:01->eth_dst,output:LOCAL",
	"add-flow % table=2,icmp6,icmp_type=135,nd_target=fd5d::1,actions=controller:128,goto_table:3",
	"add-flow % table=3,tcp6,tcp_flags=+syn,metadata=0x1/0xff,actions=resubmit(,4),move:NXM_NX_REG0[]->NXM_NX_REG1[0..31],write_metadata:0x2/0xf",
	"add-meter % meter=3,pktps,burst,stats,band=type=drop,rate=1000,burst_size=100",
	"add-group % group_id=9,type=select,bucket=weight:1,actions=output:LOCAL,bucket=weight:2,actions=in_port",
	"add-group % group_id=10,type=ff,bucket=watch_port:1,actions=output:1,bucket=watch_group:9,actions=group:9",
	"add-flow % table=4,udp6,udp_src=0x8000/0xff00,actions=meter:3,group:9",
	"--bundle add-flow % table=6,ip,nw_dst=10.0.0.0/8,actions=push_vlan:0x8100,set_field:4106->vlan_vid,output:LOCAL",
	"dump-flows %", "dump-aggregate %", "dump-groups %", "dump-group-stats %", "dump-group-features %",
	"dump-meters %", "meter-stats %", "meter-features %", "dump-ports %", "dump-ports-desc %",
	"mod-port % @ up", "mod-port % @ no-flood", "get-frags %", "probe %",
	"packet-out % in_port=controller,packet=02000000000102000000000286dd,actions=output:LOCAL",
}

// commands15 are those that 1.3 has no words for.
var commands15 = []string{
	"add-group % group_id=19,type=select,selection_method=dp_hash,bucket=bucket_id:0,weight:100,actions=output:LOCAL,bucket=bucket_id:1,weight:0,actions=in_port",
	"add-group % group_id=20,type=select,selection_method=hash,selection_method_param=5,fields(ipv6_src,tcp_src),bucket=bucket_id:0,weight:1,actions=output:LOCAL",
	"insert-buckets % group_id=19,command_bucket_id=last,bucket=bucket_id:7,weight:3,actions=output:LOCAL",
	"remove-buckets % group_id=19,command_bucket_id=1",
	"add-flow % table=5,importance=3,ipv6,ipv6_dst=fd5d::/64,actions=meter:3,set_field:fd5e::/64->ipv6_dst,group:19",
	"dump-flows % table=5", "dump-groups % 19", "dump-group-stats % group_id=19", "dump-table-desc %",
}

// talk is what we say ourselves.
func talk(v Version) []Body {
	punt := FlowMod{Table: 0, Priority: 1, Cookie: 0xc0ffee, Flags: FlagSendRemoved, Match: Match{Uint(EthType, 0x27c0)},
		Instructions: Apply(Output{Port: PortController, MaxLen: WholePacket})}
	drop := punt
	drop.Command, drop.Cookie, drop.OutPort = FlowDelete, 0, Some(PortController)
	return []Body{
		FeaturesRequest{}, GetConfigRequest{}, SetConfig{Config{MissLen: WholePacket}}, EchoRequest{Data: []byte("still there?")},
		MultipartRequest{Ask: AskDesc{}}, MultipartRequest{Ask: AskPorts{}}, MultipartRequest{Ask: AskPortStats{}},
		RoleRequest{RoleState{Role: RolePrimary, Generation: 5}}, RoleRequest{RoleState{Role: RoleSecondary, Generation: 4}},
		GetAsyncRequest{}, SetAsync{Async{PacketIn: AsyncMask{63, 0}, PortStatus: AsyncMask{7, 7}, FlowRemoved: AsyncMask{15, 0}}}, GetAsyncRequest{},
		punt, PacketOut{InPort: PortController, Actions: []Action{Output{Port: PortTable}}, Data: frame}, BarrierRequest{}, drop,
		FlowMod{Match: Match{Addr(IPv6Dst, host)}}, GroupMod{Command: GroupModify, ID: 77},
		BundleControl{ID: 1, Kind: BundleOpen, Flags: BundleAtomic}, BundleAdd{ID: 1, Flags: BundleAtomic, Message: Message{v, 0, punt}},
		BundleControl{ID: 1, Kind: BundleCommit, Flags: BundleAtomic}, BundleControl{ID: 2, Kind: BundleCommit, Flags: BundleAtomic},
	}
}

// TestOpenVSwitchAnswers talks to a real switch, by its own tool and by us, and understands all of it.
func TestOpenVSwitchAnswers(t *testing.T) {
	ovs := nstest.New(t, "switch").NewOVS(t)
	var said []recording
	for _, v := range versions(0) {
		name := map[Version]string{V13: "OpenFlow13", V15: "OpenFlow15"}[v]
		bridge := fmt.Sprint("s", uint8(v))
		socket := ovs.Bridge(t, bridge, name)
		k := &tap{seen: map[string]bool{}}
		at := filepath.Join(ovs.Dir, bridge+".tap")
		k.listen(t, at, socket)
		lines := commands
		if v == V15 {
			lines = append(lines, commands15...)
		}
		for _, line := range lines {
			words := strings.Fields(strings.NewReplacer("%", "unix:"+at, "@", bridge).Replace(line))
			ovs.Ofctl(t, append([]string{"-O", name}, words...)...)
		}
		converse(t, v, at, func() { ovs.Ofctl(t, "-O", name, "mod-port", socket, bridge, "down") })
		k.mu.Lock()
		said = append(said, k.said...)
		k.mu.Unlock()
	}
	for _, r := range said {
		understood(t, r)
	}
	if *record {
		write(t, said)
	}
}

// converse says our own, each followed by a barrier whose answer it waits for, and hears of a change.
func converse(t *testing.T, v Version, at string, change func()) {
	t.Helper()
	conn, err := net.Dial("unix", at)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	say(t, conn, Message{v, 1, Hello{Versions: Versions(v)}})
	for i, body := range talk(v) {
		id := uint32(1000 + 2*i)
		if add, ok := body.(BundleAdd); ok {
			add.Message.XID = id
			body = add
		}
		say(t, conn, Message{v, id, body})
		say(t, conn, Message{v, id + 1, BarrierRequest{}})
		until(t, conn, TypeBarrierReply, id+1)
	}
	change()
	until(t, conn, TypePortStatus, 0)
}

func say(t *testing.T, conn net.Conn, m Message) {
	t.Helper()
	b, err := m.Append(nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := conn.Write(b); err != nil {
		t.Fatal(err)
	}
}

// until reads up to a message of that type and number.
func until(t *testing.T, conn net.Conn, want Type, id uint32) {
	t.Helper()
	for {
		b, err := readMessage(conn)
		if err != nil {
			t.Fatalf("the switch hung up before its %v (xid %d): %v", want, id, err)
		}
		m, err := Parse(b)
		if err != nil {
			t.Fatalf("%v: %x", err, b)
		}
		if m.Body.Type(m.Version) == want && m.XID == id {
			return
		}
	}
}

func write(t *testing.T, said []recording) {
	t.Helper()
	var text strings.Builder
	text.WriteString("# What Open vSwitch and its ovs-ofctl said: go test ./internal/openflow/ofp -run OpenVSwitchAnswers -record (as root)\n")
	for _, r := range said {
		fmt.Fprintf(&text, "%s: %x\n", r.name, r.bytes)
	}
	if err := os.WriteFile(recorded, []byte(text.String()), 0o644); err != nil {
		t.Fatal(err)
	}
}
