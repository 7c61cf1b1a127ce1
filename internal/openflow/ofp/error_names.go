package ofp

// An ErrorKind is the coarse part of an error.
type ErrorKind uint16

// The kinds of errors; those behind ErrorTableFeaturesFailed are 1.5's.
const (
	ErrorHelloFailed         ErrorKind = 0
	ErrorBadRequest          ErrorKind = 1
	ErrorBadAction           ErrorKind = 2
	ErrorBadInstruction      ErrorKind = 3
	ErrorBadMatch            ErrorKind = 4
	ErrorFlowModFailed       ErrorKind = 5
	ErrorGroupModFailed      ErrorKind = 6
	ErrorPortModFailed       ErrorKind = 7
	ErrorTableModFailed      ErrorKind = 8
	ErrorQueueOpFailed       ErrorKind = 9
	ErrorSwitchConfigFailed  ErrorKind = 10
	ErrorRoleRequestFailed   ErrorKind = 11
	ErrorMeterModFailed      ErrorKind = 12
	ErrorTableFeaturesFailed ErrorKind = 13
	ErrorBadProperty         ErrorKind = 14
	ErrorAsyncConfigFailed   ErrorKind = 15
	ErrorFlowMonitorFailed   ErrorKind = 16
	ErrorBundleFailed        ErrorKind = 17
	ErrorExperimenter        ErrorKind = 0xffff
)

type errorKind struct {
	name, prefix string
	codes        []string
}

var errorKinds = map[ErrorKind]errorKind{
	ErrorHelloFailed: {"HELLO_FAILED", "OFPHFC", []string{"INCOMPATIBLE", "EPERM"}},
	ErrorBadRequest: {"BAD_REQUEST", "OFPBRC", []string{"BAD_VERSION", "BAD_TYPE", "BAD_MULTIPART",
		"BAD_EXPERIMENTER", "BAD_EXP_TYPE", "EPERM", "BAD_LEN", "BUFFER_EMPTY", "BUFFER_UNKNOWN",
		"BAD_TABLE_ID", "IS_SLAVE", "BAD_PORT", "BAD_PACKET", "MULTIPART_BUFFER_OVERFLOW",
		"MULTIPART_REQUEST_TIMEOUT", "MULTIPART_REPLY_TIMEOUT", "MULTIPART_BAD_SCHED",
		"PIPELINE_FIELDS_ONLY", "UNKNOWN"}},
	ErrorBadAction: {"BAD_ACTION", "OFPBAC", []string{"BAD_TYPE", "BAD_LEN", "BAD_EXPERIMENTER",
		"BAD_EXP_TYPE", "BAD_OUT_PORT", "BAD_ARGUMENT", "EPERM", "TOO_MANY", "BAD_QUEUE",
		"BAD_OUT_GROUP", "MATCH_INCONSISTENT", "UNSUPPORTED_ORDER", "BAD_TAG", "BAD_SET_TYPE",
		"BAD_SET_LEN", "BAD_SET_ARGUMENT", "BAD_SET_MASK", "BAD_METER"}},
	ErrorBadInstruction: {"BAD_INSTRUCTION", "OFPBIC", []string{"UNKNOWN_INST", "UNSUP_INST",
		"BAD_TABLE_ID", "UNSUP_METADATA", "UNSUP_METADATA_MASK", "BAD_EXPERIMENTER", "BAD_EXP_TYPE",
		"BAD_LEN", "EPERM", "DUP_INST"}},
	ErrorBadMatch: {"BAD_MATCH", "OFPBMC", []string{"BAD_TYPE", "BAD_LEN", "BAD_TAG",
		"BAD_DL_ADDR_MASK", "BAD_NW_ADDR_MASK", "BAD_WILDCARDS", "BAD_FIELD", "BAD_VALUE", "BAD_MASK",
		"BAD_PREREQ", "DUP_FIELD", "EPERM"}},
	ErrorFlowModFailed: {"FLOW_MOD_FAILED", "OFPFMFC", []string{"UNKNOWN", "TABLE_FULL",
		"BAD_TABLE_ID", "OVERLAP", "EPERM", "BAD_TIMEOUT", "BAD_COMMAND", "BAD_FLAGS", "CANT_SYNC",
		"BAD_PRIORITY", "IS_SYNC"}},
	ErrorGroupModFailed: {"GROUP_MOD_FAILED", "OFPGMFC", []string{"GROUP_EXISTS", "INVALID_GROUP",
		"WEIGHT_UNSUPPORTED", "OUT_OF_GROUPS", "OUT_OF_BUCKETS", "CHAINING_UNSUPPORTED",
		"WATCH_UNSUPPORTED", "LOOP", "UNKNOWN_GROUP", "CHAINED_GROUP", "BAD_TYPE", "BAD_COMMAND",
		"BAD_BUCKET", "BAD_WATCH", "EPERM", "UNKNOWN_BUCKET", "BUCKET_EXISTS"}},
	ErrorPortModFailed: {"PORT_MOD_FAILED", "OFPPMFC", []string{"BAD_PORT", "BAD_HW_ADDR",
		"BAD_CONFIG", "BAD_ADVERTISE", "EPERM"}},
	ErrorTableModFailed:     {"TABLE_MOD_FAILED", "OFPTMFC", []string{"BAD_TABLE", "BAD_CONFIG", "EPERM"}},
	ErrorQueueOpFailed:      {"QUEUE_OP_FAILED", "OFPQOFC", []string{"BAD_PORT", "BAD_QUEUE", "EPERM"}},
	ErrorSwitchConfigFailed: {"SWITCH_CONFIG_FAILED", "OFPSCFC", []string{"BAD_FLAGS", "BAD_LEN", "EPERM"}},
	ErrorRoleRequestFailed: {"ROLE_REQUEST_FAILED", "OFPRRFC", []string{"STALE", "UNSUP", "BAD_ROLE",
		"ID_UNSUP", "ID_IN_USE"}},
	ErrorMeterModFailed: {"METER_MOD_FAILED", "OFPMMFC", []string{"UNKNOWN", "METER_EXISTS",
		"INVALID_METER", "UNKNOWN_METER", "BAD_COMMAND", "BAD_FLAGS", "BAD_RATE", "BAD_BURST",
		"BAD_BAND", "BAD_BAND_DETAIL", "OUT_OF_METERS", "OUT_OF_BANDS"}},
	ErrorTableFeaturesFailed: {"TABLE_FEATURES_FAILED", "OFPTFFC", []string{"BAD_TABLE",
		"BAD_METADATA", "BAD_TYPE", "BAD_LEN", "BAD_ARGUMENT", "EPERM"}},
	ErrorBadProperty: {"BAD_PROPERTY", "OFPBPC", []string{"BAD_TYPE", "BAD_LEN", "BAD_VALUE",
		"TOO_MANY", "DUP_TYPE", "BAD_EXPERIMENTER", "BAD_EXP_TYPE", "BAD_EXP_VALUE", "EPERM"}},
	ErrorAsyncConfigFailed: {"ASYNC_CONFIG_FAILED", "OFPACFC", []string{"INVALID", "UNSUPPORTED", "EPERM"}},
	ErrorFlowMonitorFailed: {"FLOW_MONITOR_FAILED", "OFPMOFC", []string{"UNKNOWN", "MONITOR_EXISTS",
		"INVALID_MONITOR", "UNKNOWN_MONITOR", "BAD_COMMAND", "BAD_FLAGS", "BAD_TABLE_ID", "BAD_OUT"}},
	ErrorBundleFailed: {"BUNDLE_FAILED", "OFPBFC", bundleCodes},
	ErrorExperimenter: {"EXPERIMENTER", "OFPET_EXPERIMENTER", nil},
}

// bundleCodes are 1.5's; the extension to 1.3 counts them from onfBundleError.
var bundleCodes = []string{"UNKNOWN", "EPERM", "BAD_ID", "BUNDLE_EXIST", "BUNDLE_CLOSED",
	"OUT_OF_BUNDLES", "BAD_TYPE", "BAD_FLAGS", "MSG_BAD_LEN", "MSG_BAD_XID", "MSG_UNSUP",
	"MSG_CONFLICT", "MSG_TOO_MANY", "MSG_FAILED", "TIMEOUT", "BUNDLE_IN_PROGRESS",
	"SCHED_NOT_SUPPORTED", "SCHED_FUTURE", "SCHED_PAST"}
