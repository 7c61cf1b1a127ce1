package health

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

var now = time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)

func ago(d time.Duration) time.Time { return now.Add(-d) }

// well is a network in which nothing is wrong.
func well() Snapshot {
	return Snapshot{
		Now: now, Version: "v1",
		Cluster: Cluster{Several: true, Leader: "c1", Controllers: []Controller{{Name: "c1", Votes: true, Version: "v1"}, {Name: "c2", Votes: true, Version: "v1"}, {Name: "c3", Votes: true}}},
		Stores:  []Store{{At: "c1", Dir: "/var/lib/x", Free: 5 << 30, Needed: 8 << 20, Total: 50 << 30}},
		Routers: []Router{{Name: "r1", Version: "v1"}, {Name: "r2", Unconfirmed: 3, Told: ago(time.Second)}},
		Hosts:   []Host{{Name: "s1", Version: "v1"}, {Name: "s2", Ahead: 3 * time.Second}, {Name: "s3", Alone: true, Since: ago(2 * time.Second)}},
		Services: []Service{{Name: "web", Instances: 2, Taken: true, Had: true},
			{Name: "planned"}, {Name: "was-asked-for", Asked: ago(time.Hour)}},
		Credentials: []Credential{{Role: "host", Name: "s1", Until: now.Add(60 * 24 * time.Hour), For: 90 * 24 * time.Hour},
			{Role: "admin", Name: "long-gone", Until: ago(30 * 24 * time.Hour), For: 90 * 24 * time.Hour},
			{Role: "host", Name: "brief", Until: now.Add(time.Minute), For: 90 * time.Second}},
		Agents: []Agent{{Name: "e1", Version: "v1"}}, Entries: []Entry{{Name: "files"}},
		Former: Former{ID: "0a0a", Since: ago(time.Hour)},
	}
}

// cases change one thing each, and say what is to be told of it.
var cases = []struct {
	name     string
	change   func(*Snapshot)
	kind     Kind
	severity Severity
	what     string // a part of it
	next     string
}{
	{"an agent of boost is away", func(s *Snapshot) { s.Agents[0].Away, s.Agents[0].Since = true, ago(time.Minute) },
		AgentAway, Warning, "agent e1 of boost is not connected", "scaffold boostd --config /etc/scaffold/boostd.yaml  # on e1; if it is gone for good: scaffold boost agent forget e1"},
	{"an agent of boost cannot do what it is told", func(s *Snapshot) { s.Agents[0].Error = "no room" },
		AgentError, Warning, "has not taken its lanes: no room", "scaffold boost agent ls"},
	{"one of several paths is lost", func(s *Snapshot) {
		s.Agents[0].Lost = []Way{{Other: "w1", Path: "192.0.2.1 to 198.51.100.1", Why: "the other agent does not answer"}}
	},
		BoostPath, Warning, "agents e1 and w1 of boost have lost a path, 192.0.2.1 to 198.51.100.1, and go on by others: the other agent does not answer", "scaffold boost agent ls"},
	{"nobody carries an entry", func(s *Snapshot) { s.Entries[0].Why = "site \"west\" has no agent" },
		BoostUnserved, Warning, "connections of the entry files pass unboosted: site \"west\" has no agent", "scaffold boost agent ls"},
	{"the last voter but one is dead", func(s *Snapshot) {
		s.Cluster.Leader, s.Cluster.Controllers = "", []Controller{{Name: "c1", Votes: true}, {Name: "c2", Votes: true, Away: true}}
	},
		NoLeader, Critical, "no controller leads: 1 of 2 answer, and 2 have to", "systemctl start scaffold-controld  # on c2"},
	{"controllers choose a leader", func(s *Snapshot) { s.Cluster.Leader = "" }, NoLeader, Critical, "no controller leads at the moment", "scaffold controller ls"},
	{"controllers began to choose a leader a moment ago", func(s *Snapshot) {
		s.Cluster.Leader, s.Cluster.Since, s.Cluster.Lease = "", ago(4*time.Second), 3*time.Second
	},
		NoLeader, Warning, "the controllers choose a leader", "scaffold status"},
	{"they choose for too long", func(s *Snapshot) {
		s.Cluster.Leader, s.Cluster.Since, s.Cluster.Lease = "", ago(6*time.Second), 3*time.Second
	},
		NoLeader, Critical, "no controller leads at the moment", "scaffold controller ls"},
	{"the etcd elsewhere is away", func(s *Snapshot) { s.Cluster = Cluster{Several: true, Store: "http://e1:2379", Trouble: "timeout"} },
		NoLeader, Critical, "the store at http://e1:2379 does not answer", "etcdctl --endpoints=http://e1:2379 endpoint health"},
	{"one of three is dead", func(s *Snapshot) {
		s.Cluster.Controllers[2].Away, s.Cluster.Controllers[2].Since = true, ago(time.Hour)
	},
		ControllerAway, Warning, "if one more stops nothing can be changed", "systemctl start scaffold-controld  # on c3; if it is gone for good: scaffold controller remove c3"},
	{"one without a vote is dead", func(s *Snapshot) { s.Cluster.Controllers[2] = Controller{Name: "c3", Away: true} },
		ControllerAway, Warning, "it cannot take over", "systemctl start scaffold-controld  # on c3; if it is gone for good: scaffold controller remove c3"},
	{"one does not catch up", func(s *Snapshot) {
		s.Cluster.Controllers[2].Learns, s.Cluster.Controllers[2].Since = true, ago(time.Hour)
	},
		ControllerLearns, Warning, "c3 has not caught up", "journalctl -u scaffold-controld -n 50  # on c3"},
	{"nothing is saved", func(s *Snapshot) { s.Stores[0].Failing, s.Stores[0].Pending = "store: it is broken", 2 },
		StoreFailing, Critical, "the state is not saved: store: it is broken (2 records wait)", "journalctl -u scaffold-controld -n 50  # on c1"},
	{"the store is damaged", func(s *Snapshot) { s.Stores[0].Damaged = "db: page 7" }, StoreDamaged, Critical, "db: page 7", "scaffold state restore --help"},
	{"the store lags", func(s *Snapshot) { s.Stores[0].Behind = 100000 }, StoreBehind, Warning, "100000 changes behind", "journalctl -u scaffold-controld -n 50  # on c1"},
	{"the disk is full", func(s *Snapshot) { s.Stores[0].Free, s.Stores[0].Failing = 1<<20, "disk full" },
		DiskFull, Critical, "the disk of controller c1 is full: 1 MiB are free under /var/lib/x, 8 MiB are needed", "df -h /var/lib/x  # on c1"},
	{"the disk is nearly full", func(s *Snapshot) { s.Stores[0].Free = 60 << 20 }, DiskLow, Warning, "60 MiB of 50 GiB are free", "df -h /var/lib/x  # on c1"},
	{"the state is a backup's", func(s *Snapshot) { s.Restored, s.Unknown = "yesterday", 1 }, StateRestored, Warning, "1 service that it does not know", "scaffold events -n 1000"},
	{"the only router is dead", func(s *Snapshot) { s.Routers = []Router{{Name: "r1", Away: true, Since: ago(time.Hour)}} },
		RouterAway, Critical, "router r1 is not connected, and no other one is", "systemctl start scaffold-routerd  # on r1"},
	{"one router is dead", func(s *Snapshot) { s.Routers[1].Away = true }, RouterAway, Warning, "r2 is not connected", "systemctl start scaffold-routerd  # on r2; if it is gone for good: scaffold router forget r2"},
	{"a router is slow", func(s *Snapshot) { s.Routers[1].Told = ago(20 * time.Second) }, RouterLags, Warning, "r2 has not confirmed 3 changes", "journalctl -u scaffold-routerd -n 50  # on r2"},
	{"a router hangs", func(s *Snapshot) { s.Routers[1].Told = ago(2 * time.Minute) }, RouterLags, Critical, "r2 has not confirmed 3 changes", "journalctl -u scaffold-routerd -n 50  # on r2"},
	{"a router cannot", func(s *Snapshot) { s.Routers[0].Error = "no room" }, RouterError, Critical, "r1 could not apply its rules: no room", "journalctl -u scaffold-routerd -n 50  # on r1"},
	{"a host is silent", func(s *Snapshot) { s.Hosts[0].Silent = true }, HostSilent, Warning, "host s1 does not answer", "systemctl start scaffold-hostd  # on s1; if it is gone for good: scaffold host forget s1"},
	{"a host's daemon is dead", func(s *Snapshot) { s.Hosts[2].Since = ago(time.Minute) }, HostDaemon, Warning, "the daemon of host s3 is away", "systemctl start scaffold-hostd  # on s3"},
	{"a host hangs on a dead router", func(s *Snapshot) { s.Hosts[2].Since, s.Hosts[2].Router = ago(time.Minute), "r9" }, HostDaemon, Warning, "nobody hears host s3: its router r9 is away", "systemctl start scaffold-routerd  # on r9"},
	{"the last server is gone", func(s *Snapshot) { s.Services[0].Instances, s.Services[0].Taken = 0, false },
		ServiceUnserved, Critical, "nobody serves service web any more", "scaffold explain web  # if it is no longer wanted: scaffold service rm web"},
	{"no instance is ready", func(s *Snapshot) { s.Services[0].Taken, s.Services[0].Reason = false, "s1 is not ready: 503" },
		ServiceUnready, Critical, "it has 2 instances, s1 is not ready: 503", "scaffold explain web"},
	{"who would serve may not", func(s *Snapshot) { s.Services[1].Refused = "s1 has no permit" }, ServiceUnserved, Critical, "nobody serves service planned: s1 has no permit", "scaffold explain planned"},
	{"clients ask for what nobody ever served", func(s *Snapshot) { s.Services[1].Asked = ago(time.Second) }, ServiceWanted, Warning, "hosts ask for service planned", "scaffold explain planned"},
	{"a host's credential ends", func(s *Snapshot) { s.Credentials[0].Until = now.Add(5 * 24 * time.Hour) },
		CredentialEnds, Warning, "the credential of host s1 ends in 5 days: it is renewed while its daemon is connected", "systemctl start scaffold-hostd  # on s1"},
	{"a router's ends today", func(s *Snapshot) {
		s.Credentials[0] = Credential{Role: "router", Name: "r7", Until: now.Add(time.Hour), For: 90 * 24 * time.Hour}
	},
		CredentialEnds, Critical, "the credential of router r7 ends in 1 hour", "systemctl start scaffold-routerd  # on r7"},
	{"a host's has ended", func(s *Snapshot) { s.Credentials[0].Until = ago(24 * time.Hour) },
		CredentialEnds, Critical, "the credential of host s1 ended 24 hours ago", "scaffold token create --role host --name s1"},
	{"an administrator's ends", func(s *Snapshot) { s.Credentials[1].Until = now.Add(time.Hour) },
		CredentialEnds, Warning, "the credential of admin long-gone ends in 1 hour", "scaffold status  # on long-gone's machine"},
	{"the certificate between controllers ends", func(s *Snapshot) {
		s.Credentials = []Credential{{Role: "peer", Name: "c1", File: "/p.pem", Until: now.Add(time.Hour), For: 365 * 24 * time.Hour}}
	},
		CertificateEnds, Critical, "the certificate in /p.pem of controller c1 ends in 1 hour", "openssl x509 -enddate -noout -in /p.pem  # on c1"},
	{"the former key is forgotten", func(s *Snapshot) { s.Former.Since = ago(30 * 24 * time.Hour) }, KeyFormer, Warning, "former key 0a0a still counts", "scaffold net key retire 0a0a"},
	{"a permit ends", func(s *Snapshot) { s.Hosts[0].Permits = []Permit{{"web", now.Add(time.Minute)}} }, PermitEnds, Warning, "the permit of host s1 to serve web ends in 1 minute", "scaffold service delegate web --key web.key --host s1  # where the service's key is"},
	{"a clock is wrong", func(s *Snapshot) { s.Hosts[1].Ahead = -2 * time.Minute }, ClockDiffers, Warning, "the clock of host s2 is 2 minutes behind", "timedatectl timesync-status  # on s2"},
	{"versions differ", func(s *Snapshot) { s.Hosts[0].Version = "v0" }, VersionDiffers, Warning, "host s1 runs v0; the controller that leads runs v1", "scaffold upgrade --check"},
	{"the network is open", func(s *Snapshot) { s.Open = []string{"[::]:23728"} }, NetworkOpen, Warning, "whoever reaches [::]:23728 may join it", "scaffold install controller --trust keys  # where the controller runs"},
	{"a router joined an open network", func(s *Snapshot) { s.Own = &Own{Role: "router", Name: "r1", Joined: true, Open: true} }, NetworkOpen, Warning, "the network is open: router r1 joined it without a key", "scaffold install controller --trust keys  # where the controller runs"},
	{"controllers speak in clear", func(s *Snapshot) { s.Clear.Peers = []string{"http://c1:23729", "http://c2:23729"} }, StoreClear, Warning, "whoever reaches http://c1:23729, http://c2:23729 can read and change all of it", "scaffold controld --help  # first --peer-ca, --peer-cert and --peer-key at all of them, one after the other, then https:// in --cluster"},
	{"the etcd elsewhere is spoken to in clear", func(s *Snapshot) { s.Clear = Clear{Etcd: []string{"http://e1:2379"}, Keys: true} }, StoreClear, Warning, "learns all of it, the network's private key too", "scaffold controld --help  # --etcd-ca, and https:// in --etcd"},
	{"a host is alone", func(s *Snapshot) { s.Own = &Own{Role: "host", Name: "s1", Uplinks: 1, Trouble: "refused"} }, NotJoined, Critical, "host s1 is not connected to a controller: refused", "scaffold host status"},
	{"a router is alone", func(s *Snapshot) { s.Own = &Own{Role: "router", Name: "r1", Controller: "http://c1:1"} }, NotJoined, Critical, "router r1 is not connected to a controller at http://c1:1", "journalctl -u scaffold-routerd -n 50"},
	{"a host has no router", func(s *Snapshot) { s.Own = &Own{Role: "host", Name: "s1", Wired: true, Trouble: "eth0: no carrier"} }, NoUplink, Critical, "host s1 has no router: eth0: no carrier", "scaffold host status"},
	{"a locator's certificate ends", func(s *Snapshot) { s.Own = &Own{Role: "host", Name: "s1", Joined: true, Until: now.Add(3 * time.Hour)} }, CertificateEnds, Warning, "ends in 3 hours", "scaffold host status"},
	{"a newcomer's certificate ends", func(s *Snapshot) {
		s.Own = &Own{Role: "host", Name: "s1", Joined: true, Until: now.Add(10 * time.Minute), Valid: time.Hour}
	}, CertificateEnds, Warning, "ends in 10 minutes", "scaffold host status"},
	{"a host is full", func(s *Snapshot) { s.Own = &Own{Role: "host", Name: "s1", Joined: true, Full: 1} }, TableFull, Critical, "full to 100 %", "scaffold flow ls"},
}

func TestNothingIsWrongWithANetworkThatIsWell(t *testing.T) {
	if all := Judge(well()); len(all) > 0 {
		t.Errorf("%+v", all)
	}
	if all := Judge(Snapshot{Now: now}); len(all) > 0 {
		t.Errorf("of nothing: %+v", all)
	}
}

func TestEachTroubleIsToldWithItsNextCommand(t *testing.T) {
	seen := map[Kind]bool{}
	for _, c := range cases {
		s := well()
		c.change(&s)
		all := Judge(s)
		if len(all) != 1 {
			t.Errorf("%s: %d problems, want 1: %+v", c.name, len(all), all)
			continue
		}
		p := all[0]
		seen[p.Kind] = true
		if p.Kind != c.kind || p.Severity != c.severity || !strings.Contains(p.What, c.what) || p.Next != c.next || p.Count < 1 {
			t.Errorf("%s:\n  %v %v %q\n  next %q\nwant\n  %v %v %q\n  next %q", c.name, p.Kind, p.Severity, p.What, p.Next, c.kind, c.severity, c.what, c.next)
		}
		if strings.Contains(p.What, "1 hosts") || strings.ContainsAny(p.What, "\n\t") || strings.HasSuffix(p.What, ".") {
			t.Errorf("%s: %q is no plain sentence", c.name, p.What)
		}
	}
	for _, k := range Kinds {
		if !seen[k] {
			t.Errorf("no case tells of %s", k)
		}
	}
}

// Hosts and routers come back one after the other when a controller begins to lead: nobody is missed meanwhile.
func TestWhoIsOnTheWayIsNotMissed(t *testing.T) {
	s := well()
	s.Settling = true
	s.Routers[0].Away, s.Hosts[0].Silent, s.Services[0] = true, true, Service{Name: "web", Had: true}
	if all := Judge(s); len(all) > 0 {
		t.Errorf("%+v", all)
	}
}

func TestTheWorstIsToldFirst(t *testing.T) {
	s := well()
	s.Open = []string{"[::]:1"}
	s.Hosts[0].Silent = true
	s.Services[0].Instances, s.Services[0].Taken = 0, false
	var kinds []Kind
	for _, p := range Judge(s) {
		kinds = append(kinds, p.Kind)
	}
	if want := []Kind{ServiceUnserved, HostSilent, NetworkOpen}; !slices.Equal(kinds, want) {
		t.Errorf("%v, want %v", kinds, want)
	}
	if w := Worst(Judge(s)); w != Critical {
		t.Errorf("worst is %v", w)
	}
}

func TestManyOfASortAreToldAtOnce(t *testing.T) {
	s := well()
	s.Hosts = nil
	for i := range 500 {
		s.Hosts = append(s.Hosts, Host{Name: fmt.Sprint("h", i), Silent: true, Since: ago(time.Duration(i) * time.Second)})
	}
	all := Judge(s)
	if len(all) != 1 || all[0].Count != 500 || all[0].What != "500 hosts do not answer (h0, h1, h2 and 497 more): their flows turn to other hosts where there are any" ||
		!all[0].Since.Equal(ago(499*time.Second)) || all[0].Next != "scaffold host ls" {
		t.Errorf("%d problems, first %+v", len(all), all[0])
	}
}

// The first certificate of a host lasts an hour: it is not about to end half an hour before.
func TestANewcomersCertificateIsNoProblem(t *testing.T) {
	s := Snapshot{Now: now, Own: &Own{Role: "host", Name: "s1", Joined: true, Until: now.Add(30 * time.Minute), Valid: time.Hour}}
	if all := own(s); len(all) > 0 {
		t.Errorf("%+v", all)
	}
}

// In a lab nothing is a unit of systemd, commands say which lab they ask, and that it is open is its nature.
func TestNextCommandsOfALabAreALabs(t *testing.T) {
	for _, c := range cases {
		s := well()
		c.change(&s)
		s.Lab = "net"
		all := Judge(s)
		if c.kind == NetworkOpen || c.kind == StoreClear {
			if len(all) > 0 {
				t.Errorf("%s: %+v", c.name, all)
			}
			continue
		}
		if len(all) != 1 {
			t.Errorf("%s: %d problems, want 1: %+v", c.name, len(all), all)
			continue
		}
		next := all[0].Next
		if regexp.MustCompile(`systemctl|journalctl|  # on `).MatchString(next) {
			t.Errorf("%s: next %q, which does nothing in a lab", c.name, next)
		}
		for command := range strings.SplitSeq(strings.ReplaceAll(next, "  # ", " && "), " && ") {
			if strings.Contains(command, "scaffold ") && !strings.Contains(command, "--lab net") && !strings.HasSuffix(command, "--help") {
				t.Errorf("%s: %q does not say which lab it asks", c.name, command)
			}
		}
	}
}
