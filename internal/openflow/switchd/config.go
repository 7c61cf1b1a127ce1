package switchd

import (
	"crypto/tls"
	"fmt"
	"strconv"
	"strings"
	"time"

	"scaffold.dev/scaffold/controller"
	"scaffold.dev/scaffold/internal/api"
	"scaffold.dev/scaffold/internal/core/names"
	"scaffold.dev/scaffold/internal/openflow/ofconn"
	"scaffold.dev/scaffold/internal/operate/obs"
	"scaffold.dev/scaffold/wire"
)

// Config is what the daemon is told at start.
type Config struct {
	Listen     []string // where switches connect: tcp:HOST:PORT, ssl:HOST:PORT or unix:FILE
	TLS        *tls.Config
	Controller string // endpoint of the API that switches are joined to
	Relay      string // endpoint that the control channel of hosts is carried to; "": Controller
	Switches   []Switch
	Links      []Link // that switches cannot find out themselves
	OnlyListed bool   // switches that Switches does not name are refused
	Clear      bool   // in a network with keys, switches may come by tcp
	FirstTable uint8  // of those that Scaffold uses besides 0; 0: DefaultFirstTable
	// Primary makes this controller a switch's only one that may change it. Without, all are equal, and rules of
	// others stay possible.
	Primary     bool
	Release     bool // at the end, take all of ours out of the switches that are connected
	ProbesMax   int  // a second, to all hosts together; 0: DefaultProbesMax
	Silence     time.Duration
	Modules     []controller.Module
	Steering    controller.Module // has switches send agents of boost what they carry; nil: none does
	OperatorAPI *OperatorAPI      // answers operators; nil: nobody asks
	Metrics     *obs.Metrics      // of "switchd"; nil: none are kept
	keys        bool              // the network has them
}

// Defaults of a Config.
const (
	DefaultListen     = "tcp:[::]:6653"
	DefaultFirstTable = 10
	DefaultProbesMax  = 8000
	DefaultSilence    = 5 * time.Second
)

// A Switch is what is set for one in advance.
type Switch struct {
	Name     string
	Datapath uint64
	Service  bool           // also resolves first packets
	Block    uint32         // number of the block of locators to ask for; 0: any
	MTUs     map[string]int // by port: how many bytes of IPv6 fit, where hosts may send more
	Cert     string         // fingerprint of its certificate; "": by ssl, in a network with keys, one for its name or datapath id
}

// ParseSwitch reads NAME=DATAPATHID[,service=false][,block=N][,mtu=PORT:BYTES][,cert=SHA256]; the id is 16 hexadecimal digits, as Open
// vSwitch prints it.
func ParseSwitch(text string) (s Switch, err error) {
	first, rest, more := strings.Cut(text, ",")
	name, id, ok := strings.Cut(first, "=")
	if !ok || checkName(name) != nil {
		return s, fmt.Errorf("switch %q: want NAME=DATAPATHID[,service=false][,block=N][,mtu=PORT:BYTES][,cert=SHA256], the name of letters, digits and hyphens", text)
	}
	s = Switch{Name: name, Service: true}
	if s.Datapath, err = strconv.ParseUint(strings.TrimPrefix(id, "0x"), 16, 64); err != nil || s.Datapath == 0 {
		return s, fmt.Errorf("switch %q: %q is no datapath id: want up to 16 hexadecimal digits, not all 0", text, id)
	}
	if !more {
		return s, nil
	}
	for part := range strings.SplitSeq(rest, ",") {
		if err := s.set(part); err != nil {
			return s, fmt.Errorf("switch %q: %w", text, err)
		}
	}
	return s, nil
}

func (s *Switch) set(part string) (err error) {
	key, value, _ := strings.Cut(part, "=")
	switch key {
	case "service":
		if s.Service, err = strconv.ParseBool(value); err != nil {
			return fmt.Errorf("service=%q: want true or false", value)
		}
	case "block":
		block, err := strconv.ParseUint(value, 10, 8)
		if err != nil || block == 0 {
			return fmt.Errorf("block=%q: want 1 to 255", value)
		}
		s.Block = uint32(block)
	case "mtu":
		return s.setMTU(value)
	case "cert":
		s.Cert, err = parseFingerprint(value)
		return err
	default:
		return fmt.Errorf("%q is none of service, block, mtu, cert", key)
	}
	return nil
}

// setMTU reads PORT:BYTES.
func (s *Switch) setMTU(value string) error {
	i := strings.LastIndex(value, ":")
	if i < 1 {
		return fmt.Errorf("mtu=%q: want PORT:BYTES, as to-r2:1400", value)
	}
	mtu, err := strconv.Atoi(value[i+1:])
	if err != nil || mtu < minMTU || mtu > maxMTU {
		return fmt.Errorf("mtu=%q: want %d to %d bytes", value, minMTU, maxMTU)
	}
	if s.MTUs == nil {
		s.MTUs = map[string]int{}
	}
	s.MTUs[value[:i]] = mtu
	return nil
}

// What a link of IPv6 carries at least (RFC 8200 §5), and what the size of a frame can say.
const (
	minMTU = 1280
	maxMTU = 65000
)

// checkName says whether a router may be called so.
func checkName(name string) error {
	clean, err := names.Clean(name, "")
	if err == nil && (clean != name || len(name) > wire.MaxName) {
		err = fmt.Errorf("name %.40q: want up to %d letters, digits and hyphens, in lower case", name, wire.MaxName)
	}
	return err
}

// Check fills in defaults and says what is wrong.
func (c *Config) Check() error {
	if c.FirstTable == 0 {
		c.FirstTable = DefaultFirstTable
	}
	if c.ProbesMax <= 0 {
		c.ProbesMax = DefaultProbesMax
	}
	if c.Silence <= 0 {
		c.Silence = DefaultSilence
	}
	if err := checkLinks(c.Links); err != nil {
		return err
	}
	if _, err := api.ParseEndpoint(c.Controller); err != nil {
		return fmt.Errorf("controller: %w", err)
	}
	for _, target := range c.Listen {
		if err := ofconn.CheckTarget(target, c.TLS); err != nil {
			return err
		}
	}
	byName, byID := map[string]bool{}, map[uint64]bool{}
	for _, s := range c.Switches {
		switch {
		case byName[s.Name]:
			return fmt.Errorf("switch %s is named twice", s.Name)
		case byID[s.Datapath]:
			return fmt.Errorf("switch %s: datapath id %016x is another one's", s.Name, s.Datapath)
		}
		byName[s.Name], byID[s.Datapath] = true, true
	}
	return nil
}
