package ofp

import "fmt"

// MultipartRequest asks for something that may be larger than a message.
type MultipartRequest struct {
	More bool // another message goes on
	Ask  Ask
}

// MultipartReply answers one, or is a part of the answer: all but the last have More.
type MultipartReply struct {
	More bool
	Part Part
}

// A MultipartKind says what is asked for.
type MultipartKind uint16

// What can be asked for.
const (
	KindDesc          MultipartKind = 0
	KindFlows         MultipartKind = 1
	KindAggregate     MultipartKind = 2
	KindTableStats    MultipartKind = 3
	KindPortStats     MultipartKind = 4
	KindGroupStats    MultipartKind = 6
	KindGroupDescs    MultipartKind = 7
	KindGroupFeatures MultipartKind = 8
	KindMeterStats    MultipartKind = 9
	KindMeters        MultipartKind = 10
	KindMeterFeatures MultipartKind = 11
	KindPorts         MultipartKind = 13
	KindTableDescs    MultipartKind = 14
)

// An Ask is the question of a MultipartRequest.
type Ask interface{ Kind() MultipartKind }

// A Part is what a MultipartReply says.
type Part interface{ Kind() MultipartKind }

// Type implements Body.
func (MultipartRequest) Type(Version) Type { return TypeMultipartRequest }

// Type implements Body.
func (MultipartReply) Type(Version) Type { return TypeMultipartReply }

var asks = map[MultipartKind]func(*codec, Ask) Ask{
	KindDesc:          both[AskDesc, *AskDesc, Ask](),
	KindFlows:         both[AskFlows, *AskFlows, Ask](),
	KindAggregate:     both[AskAggregate, *AskAggregate, Ask](),
	KindTableStats:    both[AskTableStats, *AskTableStats, Ask](),
	KindPortStats:     both[AskPortStats, *AskPortStats, Ask](),
	KindGroupStats:    both[AskGroupStats, *AskGroupStats, Ask](),
	KindGroupDescs:    both[AskGroups, *AskGroups, Ask](),
	KindGroupFeatures: both[AskGroupFeatures, *AskGroupFeatures, Ask](),
	KindMeterStats:    both[AskMeterStats, *AskMeterStats, Ask](),
	KindMeters:        both[AskMeters, *AskMeters, Ask](),
	KindMeterFeatures: both[AskMeterFeatures, *AskMeterFeatures, Ask](),
	KindPorts:         both[AskPorts, *AskPorts, Ask](),
	KindTableDescs:    both[AskTables, *AskTables, Ask](),
}

var parts = map[MultipartKind]func(*codec, Part) Part{
	KindDesc:          both[Desc, *Desc, Part](),
	KindFlows:         both[Flows, *Flows, Part](),
	KindAggregate:     both[Aggregate, *Aggregate, Part](),
	KindTableStats:    both[TablesStats, *TablesStats, Part](),
	KindPortStats:     both[PortsStats, *PortsStats, Part](),
	KindGroupStats:    both[GroupsStats, *GroupsStats, Part](),
	KindGroupDescs:    both[Groups, *Groups, Part](),
	KindGroupFeatures: both[GroupFeatures, *GroupFeatures, Part](),
	KindMeterStats:    both[MetersStats, *MetersStats, Part](),
	KindMeters:        both[Meters, *Meters, Part](),
	KindMeterFeatures: both[MeterFeatures, *MeterFeatures, Part](),
	KindPorts:         both[Ports, *Ports, Part](),
	KindTableDescs:    both[Tables, *Tables, Part](),
}

// An OtherMultipart is a question or an answer that this package leaves alone.
type OtherMultipart struct {
	Of   MultipartKind
	Data []byte
}

// Kind implements Ask and Part.
func (o OtherMultipart) Kind() MultipartKind { return o.Of }

func (m *MultipartRequest) layout(c *codec) { layoutMultipart(c, &m.More, &m.Ask, asks) }

func (m *MultipartReply) layout(c *codec) { layoutMultipart(c, &m.More, &m.Part, parts) }

func layoutMultipart[I interface{ Kind() MultipartKind }](c *codec, more *bool, what *I, layouts map[MultipartKind]func(*codec, I) I) {
	var kind MultipartKind
	var flags uint16
	if c.writing {
		if any(*what) == nil {
			c.fail(ErrUnsayable, "a multipart message about nothing")
			return
		}
		kind = (*what).Kind()
	}
	if *more {
		flags = 1
	}
	u16(c, &kind)
	u16(c, &flags)
	c.pad(4)
	*more = flags&1 != 0
	other, isOther := any(*what).(OtherMultipart)
	layout := layouts[kind]
	switch {
	case c.err != nil:
	case layout != nil && !isOther && kind.exists(c.v):
		*what = layout(c, *what)
	case c.writing && !isOther:
		c.fail(ErrUnsayable, "multipart %v in %v", kind, c.v)
	default:
		other.Of = kind
		c.raw(&other.Data)
		*what = any(other).(I)
	}
}

func (k MultipartKind) exists(v Version) bool { return v >= V15 || k < KindTableDescs }

func (k MultipartKind) String() string { return fmt.Sprintf("kind %d", uint16(k)) }
