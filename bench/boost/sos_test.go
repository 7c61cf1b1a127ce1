package boost

import (
	"net"
	"net/netip"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"scaffold.dev/scaffold/bench/sos"
	"scaffold.dev/scaffold/internal/lab/file"
)

func TestLabsOfTheThesisExperimentsCanBeRead(t *testing.T) {
	for _, e := range SosExperiments() {
		if e.Lab == "" {
			continue
		}
		if _, err := file.Parse(e.About.Name+".yaml", []byte(e.Lab)); err != nil {
			t.Errorf("%s: %v", e.About.Name, err)
		}
	}
}

// quietly is a run that has no lab and logs nothing.
func quietly() *sosRun {
	return &sosRun{opt: SosOptions{Each: time.Second, Runs: 1, Quick: true, Log: func(string, ...any) {}}, res: &sos.Result{}}
}

func TestACellIsOfRunsThatTheEmulatorDidRight(t *testing.T) {
	r := quietly()
	r.put("a", "b", "Mbit/s", 7, outcome{value: 1, blame: "late"}, outcome{value: 4}, outcome{value: 6})
	r.put("a", "c", "Mbit/s", 0, outcome{value: 1, blame: "late"})
	if c := r.res.Cells[0]; c.Value != 5 || c.N != 2 || c.Thesis != 7 || c.Marked != "" {
		t.Errorf("%+v", c)
	}
	if c := r.res.Cells[1]; c.Value != 1 || c.Marked != "late" {
		t.Errorf("%+v", c)
	}
}

func TestTheLoadIsThatOfTheLastMinute(t *testing.T) {
	if got := loadOf("1.25 0.50 0.10 2/100 999\n"); got != 1.25 {
		t.Errorf("%v", got)
	}
}

// The boosted connection is compared with whatever does best beside it at the same loss.
func TestTheBestOtherIsOfTheSameLoss(t *testing.T) {
	r := quietly()
	r.res.Cells = append(r.res.Cells,
		sos.Cell{Of: "boosted", What: "1% loss", Value: 400},
		sos.Cell{Of: "32 BBR flows", What: "1% loss", Value: 320},
		sos.Cell{Of: "8 CUBIC flows", What: "1% loss", Value: 40},
		sos.Cell{Of: "32 BBR flows", What: "0% loss", Value: 470},
	)
	r.bests([]string{"1% loss"[:2]})
	if c := r.res.Cells[len(r.res.Cells)-1]; c.Value != 1.25 || c.What != "1% loss" {
		t.Errorf("%+v", c)
	}
}

// All of a stream is in order in the end, whatever the order in which chunks come and however many there are.
func TestStreamsAreInOrderInEachStructure(t *testing.T) {
	for _, n := range []int{1, sosWay - 1, sosWay, 1000} {
		for name, run := range map[string]func(int) (time.Duration, error){
			"lookups": mapLookups, "map": mapOfChunks,
			"in order":  func(n int) (time.Duration, error) { return striped(n, false) },
			"by chance": func(n int) (time.Duration, error) { return striped(n, true) },
		} {
			if _, err := run(n); err != nil {
				t.Errorf("%s of %d: %v", name, n, err)
			}
		}
	}
	if slices.IsSorted(shuffled()) {
		t.Error("chunks come in order")
	}
}

func TestLookupHasTheThesisNumberForEachSize(t *testing.T) {
	r := quietly()
	if err := r.lookup(t.Context()); err != nil {
		t.Fatal(err)
	}
	if len(r.res.Cells) != 8 || r.res.Cells[0].Thesis != 16 || r.res.Cells[4].Thesis != 176 || !strings.HasPrefix(r.res.Cells[4].Of, "100000 ") {
		t.Errorf("%+v", r.res.Cells)
	}
}

// What ovs-ofctl says of an entry's rules is told from other entries', the other family's and other tables' rules.
func TestRulesOfAnEntryAreFound(t *testing.T) {
	const said = `OFPST_FLOW reply (OF1.5) (xid=0x2):
 cookie=0x5c, duration=9.1s, table=0, n_packets=3, n_bytes=198, priority=4,tcp,reg3=0/0x1,in_port=2 actions=load:0x1->NXM_NX_REG3[0],resubmit(,0)
 cookie=0x5c, duration=9.1s, table=0, n_packets=3, n_bytes=198, priority=2,tcp,reg3=0/0x1,nw_src=10.0.0.1,nw_dst=10.0.0.2,tp_dst=5201 actions=set_field:02:00:00:00:00:02->eth_dst,output:2
 cookie=0x5c, duration=9.1s, table=0, n_packets=0, n_bytes=0, priority=2,tcp,reg3=0/0x1,nw_src=10.0.0.1,nw_dst=10.0.0.2,tp_dst=80 actions=set_field:02:00:00:00:00:02->eth_dst,output:2
 cookie=0x5c, duration=9.1s, table=0, n_packets=0, n_bytes=0, priority=2,tcp6,reg3=0/0x1,ipv6_src=fd00::1,tp_dst=5201 actions=output:2
 cookie=0x0, duration=9.1s, table=0, n_packets=0, n_bytes=0, priority=0 actions=NORMAL
`
	all := rulesFor(said, netip.MustParseAddrPort("10.0.0.2:5201"))
	rewritten := rulesFor(` cookie=0x5c, duration=9.1s, table=0, n_packets=3, n_bytes=198, idle_timeout=300, send_flow_rem priority=5,tcp,reg3=0/0x1,nw_src=10.0.9.9,nw_dst=10.0.0.1,tp_src=40000,tp_dst=50000 actions=set_field:10.0.0.2->ip_src,set_field:5201->tcp_src,set_field:0x1/0x1->reg3,resubmit(,0)
 cookie=0x5c, duration=9.1s, table=0, n_packets=3, n_bytes=198, hard_timeout=3, priority=9,tcp,reg3=0/0x1,nw_src=10.0.0.1,nw_dst=10.0.0.2,tp_dst=5201,tcp_flags=+syn actions=meter:7,CONTROLLER:65535
`, netip.MustParseAddrPort("10.0.0.2:5201"))
	if len(rewritten) != 1 || rewritten[0].instead != "2" || !rewritten[0].entry {
		t.Errorf("%+v", rewritten)
	}
	if len(all) != 2 || all[0].entry || all[0].priority != "4" || !all[1].entry || all[1].instead != "1" || all[1].action != "set_field:02:00:00:00:00:02->eth_dst,output:2" {
		t.Errorf("%+v", all)
	}
}

func TestWhatMorePairsKeepIsOfTheMostBefore(t *testing.T) {
	for _, c := range []struct {
		rates []float64
		want  float64
	}{{[]float64{1, 2}, 2}, {[]float64{1, 4, 3}, 0.75}, {[]float64{4, 2, 4}, 1}, {[]float64{0, 1}, 0}} {
		if got := kept(c.rates); got != c.want {
			t.Errorf("%v: %v, want %v", c.rates, got, c.want)
		}
	}
	if got := kept(sosRates(sosPairsMost)); got < 0.95 || got > 0.96 { // 22.21 of 23.22
		t.Errorf("the thesis' five pairs keep %v of what four carried", got)
	}
}

// What the thesis' tables have is taken over whole: rows, and the numbers that its text speaks of.
func TestTheThesisTablesAreWhole(t *testing.T) {
	if got := sosCoresThesis[1][0][0] / sosCoresThesis[0][0][0]; got < 1.16 || got > 1.18 { // 12.82 of 10.96
		t.Errorf("all cores carry %v of what one does for one client", got)
	}
	last := sosSocketsThesis[len(sosSocketsThesis)-1]
	if len(sosSocketsThesis) != 7 || last.connections != 20 || last.each[2] != 1997 || last.loop[2] != 434 {
		t.Errorf("%+v", last)
	}
}

func TestAPartOfAProcessorIsOfTheTimeThatWentBy(t *testing.T) {
	if got := percent(300*time.Millisecond, 2*time.Second); got != 15 {
		t.Errorf("%v %%", got)
	}
}

// A file that is received is as long as it was sent, or it is an error.
func TestAFileThatIsCutShortIsAnError(t *testing.T) {
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	for sent, right := range map[int]bool{100: true, 99: false} {
		failed := make(chan error, 1)
		go func() { failed <- receiveFile(l, filepath.Join(t.TempDir(), "to"), 100) }()
		c, err := net.Dial("tcp4", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		c.Write(make([]byte, sent))
		c.Close()
		if err := <-failed; (err == nil) != right {
			t.Errorf("%d of 100 bytes: %v", sent, err)
		}
	}
}
