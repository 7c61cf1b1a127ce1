package ofp

import "fmt"

// A Message is what one peer sends the other.
type Message struct {
	Version Version
	XID     uint32 // a reply and an error repeat that of what they answer
	Body    Body
}

// A Body is what a message says; the types that implement it are all in this package. What fills them
// from a peer's or a user's input meets a limit as an error of Append.
type Body interface {
	// Type is the type of a message that says it.
	Type(Version) Type
}

// layouter is a pointer to a T that knows its own layout.
type layouter[T any] interface {
	*T
	layout(c *codec)
}

// both makes, from the layout of a T, the function that reads a value of an interface I or writes v.
func both[T any, P layouter[T], I any]() func(c *codec, v I) I {
	return func(c *codec, v I) I {
		var t T
		if c.writing {
			t = any(v).(T)
		}
		P(&t).layout(c)
		return any(t).(I)
	}
}

// empty is embedded in what has no more to say than what it is.
type empty struct{}

func (*empty) layout(*codec) {}

// bodies has the layout of each type of message; what is not there becomes an OtherBody.
var bodies map[Type]func(*codec, Body) Body

func init() { // apart from the variable: the body of a bundle holds a message
	bodies = map[Type]func(*codec, Body) Body{
		TypeHello:            both[Hello, *Hello, Body](),
		TypeError:            both[Error, *Error, Body](),
		TypeEchoRequest:      both[EchoRequest, *EchoRequest, Body](),
		TypeEchoReply:        both[EchoReply, *EchoReply, Body](),
		TypeExperimenter:     layoutExperimenter,
		TypeFeaturesRequest:  both[FeaturesRequest, *FeaturesRequest, Body](),
		TypeFeaturesReply:    both[FeaturesReply, *FeaturesReply, Body](),
		TypeGetConfigRequest: both[GetConfigRequest, *GetConfigRequest, Body](),
		TypeGetConfigReply:   both[GetConfigReply, *GetConfigReply, Body](),
		TypeSetConfig:        both[SetConfig, *SetConfig, Body](),
		TypePacketIn:         both[PacketIn, *PacketIn, Body](),
		TypeFlowRemoved:      both[FlowRemoved, *FlowRemoved, Body](),
		TypePortStatus:       both[PortStatus, *PortStatus, Body](),
		TypePacketOut:        both[PacketOut, *PacketOut, Body](),
		TypeFlowMod:          both[FlowMod, *FlowMod, Body](),
		TypeGroupMod:         both[GroupMod, *GroupMod, Body](),
		TypePortMod:          both[PortMod, *PortMod, Body](),
		TypeMultipartRequest: both[MultipartRequest, *MultipartRequest, Body](),
		TypeMultipartReply:   both[MultipartReply, *MultipartReply, Body](),
		TypeBarrierRequest:   both[BarrierRequest, *BarrierRequest, Body](),
		TypeBarrierReply:     both[BarrierReply, *BarrierReply, Body](),
		TypeRoleRequest:      both[RoleRequest, *RoleRequest, Body](),
		TypeRoleReply:        both[RoleReply, *RoleReply, Body](),
		TypeGetAsyncRequest:  both[GetAsyncRequest, *GetAsyncRequest, Body](),
		TypeGetAsyncReply:    both[GetAsyncReply, *GetAsyncReply, Body](),
		TypeSetAsync:         both[SetAsync, *SetAsync, Body](),
		TypeMeterMod:         both[MeterMod, *MeterMod, Body](),
		TypeRoleStatus:       both[RoleStatus, *RoleStatus, Body](),
		TypeBundleControl:    both[BundleControl, *BundleControl, Body](),
		TypeBundleAdd:        both[BundleAdd, *BundleAdd, Body](),
	}
}

// An OtherBody is a message of a type that this package leaves alone.
type OtherBody struct {
	Kind Type
	Data []byte
}

// Type implements Body.
func (m OtherBody) Type(Version) Type { return m.Kind }

// Append writes the message behind b. An error says what does not fit in a message, or what the
// version cannot say.
func (m Message) Append(b []byte) ([]byte, error) {
	c := &codec{v: m.Version, writing: true, b: b, base: len(b)}
	c.message(&m)
	if c.err != nil {
		return b, c.err
	}
	return c.b, nil
}

// Parse reads one message, which must fill b. Of versions that Scaffold does not speak it reads HELLO
// and ERROR: their layout is the same in all of them.
func Parse(b []byte) (Message, error) {
	c := &codec{b: b, end: len(b)}
	var m Message
	c.message(&m)
	if c.err == nil && c.at != c.end {
		c.fail(ErrLength, "the message ends here, but %d bytes follow", c.end-c.at)
	}
	if c.err != nil {
		return Message{}, c.err
	}
	return m, nil
}

// message is a whole message; reading, its caller sees to it that nothing is left.
func (c *codec) message(m *Message) {
	var t Type
	if c.writing && m.Body == nil {
		c.fail(ErrUnsayable, "a body that is nil")
		return
	}
	if c.writing {
		t = m.Body.Type(m.Version)
	}
	c.record(2, func() {
		u8(c, &m.Version)
		u8(c, &t)
		c.length()
		u32(c, &m.XID)
		outer := c.v
		c.v = m.Version
		c.body(t, &m.Body)
		c.v = outer
	})
	if c.err != nil {
		c.err = fmt.Errorf("%v: %w", t, c.err)
	}
}

func (c *codec) body(t Type, b *Body) {
	anyVersion := t == TypeHello || t == TypeError
	switch layout := bodies[t]; {
	case c.err != nil:
	case c.v == 0 || c.v != V13 && c.v != V15 && !anyVersion:
		c.fail(ErrVersion, "%v", c.v)
	case !t.exists(c.v) && !anyVersion:
		c.fail(ErrValue, "%v has no such type", c.v)
	case layout != nil:
		*b = layout(c, *b)
	default:
		*b = layoutOther(c, t, *b)
	}
}

func layoutOther(c *codec, t Type, b Body) Body {
	o, _ := b.(OtherBody)
	o.Kind = t
	c.raw(&o.Data)
	return o
}
