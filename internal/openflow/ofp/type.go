package ofp

import "fmt"

// A Type says what a message is.
type Type uint8

// The types that 1.3 and 1.5 have in common, and those that 1.5 adds.
const (
	TypeHello              Type = 0
	TypeError              Type = 1
	TypeEchoRequest        Type = 2
	TypeEchoReply          Type = 3
	TypeExperimenter       Type = 4
	TypeFeaturesRequest    Type = 5
	TypeFeaturesReply      Type = 6
	TypeGetConfigRequest   Type = 7
	TypeGetConfigReply     Type = 8
	TypeSetConfig          Type = 9
	TypePacketIn           Type = 10
	TypeFlowRemoved        Type = 11
	TypePortStatus         Type = 12
	TypePacketOut          Type = 13
	TypeFlowMod            Type = 14
	TypeGroupMod           Type = 15
	TypePortMod            Type = 16
	TypeTableMod           Type = 17
	TypeMultipartRequest   Type = 18
	TypeMultipartReply     Type = 19
	TypeBarrierRequest     Type = 20
	TypeBarrierReply       Type = 21
	TypeQueueConfigRequest Type = 22 // 1.3 alone
	TypeQueueConfigReply   Type = 23 // 1.3 alone
	TypeRoleRequest        Type = 24
	TypeRoleReply          Type = 25
	TypeGetAsyncRequest    Type = 26
	TypeGetAsyncReply      Type = 27
	TypeSetAsync           Type = 28
	TypeMeterMod           Type = 29
	TypeRoleStatus         Type = 30 // from here on 1.5 alone
	TypeTableStatus        Type = 31
	TypeRequestForward     Type = 32
	TypeBundleControl      Type = 33
	TypeBundleAdd          Type = 34
	TypeControllerStatus   Type = 35
	typesOf13, typesOf15        = TypeMeterMod, TypeControllerStatus
)

var typeNames = [...]string{"HELLO", "ERROR", "ECHO_REQUEST", "ECHO_REPLY", "EXPERIMENTER",
	"FEATURES_REQUEST", "FEATURES_REPLY", "GET_CONFIG_REQUEST", "GET_CONFIG_REPLY", "SET_CONFIG",
	"PACKET_IN", "FLOW_REMOVED", "PORT_STATUS", "PACKET_OUT", "FLOW_MOD", "GROUP_MOD", "PORT_MOD",
	"TABLE_MOD", "MULTIPART_REQUEST", "MULTIPART_REPLY", "BARRIER_REQUEST", "BARRIER_REPLY",
	"QUEUE_GET_CONFIG_REQUEST", "QUEUE_GET_CONFIG_REPLY", "ROLE_REQUEST", "ROLE_REPLY",
	"GET_ASYNC_REQUEST", "GET_ASYNC_REPLY", "SET_ASYNC", "METER_MOD", "ROLE_STATUS", "TABLE_STATUS",
	"REQUESTFORWARD", "BUNDLE_CONTROL", "BUNDLE_ADD_MESSAGE", "CONTROLLER_STATUS"}

func (t Type) String() string {
	if int(t) < len(typeNames) {
		return typeNames[t]
	}
	return fmt.Sprintf("message type %d", uint8(t))
}

// exists reports whether the version has the type.
func (t Type) exists(v Version) bool {
	if v < V15 {
		return t <= typesOf13
	}
	return t <= typesOf15 && t != TypeQueueConfigRequest && t != TypeQueueConfigReply
}
