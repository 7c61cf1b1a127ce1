package ofp

// AskDesc asks for Desc.
type AskDesc struct{ empty }

// AskTableStats asks for TablesStats.
type AskTableStats struct{ empty }

// AskGroupFeatures asks for GroupFeatures.
type AskGroupFeatures struct{ empty }

// AskMeterFeatures asks for MeterFeatures.
type AskMeterFeatures struct{ empty }

// AskTables asks for Tables; 1.5.
type AskTables struct{ empty }

// AskFlows asks for Flows: those that FlowFilter lets through.
type AskFlows struct{ FlowFilter }

// AskAggregate asks for Aggregate, of the flows that FlowFilter lets through.
type AskAggregate struct{ FlowFilter }

// A FlowFilter selects flows: those of a table (or of AllTables) that send where it says and whose
// cookie it has, and whose matches are as narrow as its Match or narrower.
type FlowFilter struct {
	Table              uint8
	OutPort            Opt[Port]
	OutGroup           Opt[GroupID]
	Cookie, CookieMask uint64
	Match              Match
}

// AskPorts asks for Ports; of one port in 1.5 alone.
type AskPorts struct{ Port Opt[Port] }

// AskPortStats asks for PortsStats.
type AskPortStats struct{ Port Opt[Port] }

// AskGroups asks for Groups; of one group in 1.5 alone.
type AskGroups struct{ Group Opt[GroupID] }

// AskGroupStats asks for GroupsStats.
type AskGroupStats struct{ Group Opt[GroupID] }

// AskMeters asks for Meters.
type AskMeters struct{ Meter Opt[MeterID] }

// AskMeterStats asks for MetersStats.
type AskMeterStats struct{ Meter Opt[MeterID] }

// Kind implements Ask.
func (AskDesc) Kind() MultipartKind { return KindDesc }

// Kind implements Ask.
func (AskTableStats) Kind() MultipartKind { return KindTableStats }

// Kind implements Ask.
func (AskGroupFeatures) Kind() MultipartKind { return KindGroupFeatures }

// Kind implements Ask.
func (AskMeterFeatures) Kind() MultipartKind { return KindMeterFeatures }

// Kind implements Ask.
func (AskTables) Kind() MultipartKind { return KindTableDescs }

// Kind implements Ask.
func (AskFlows) Kind() MultipartKind { return KindFlows }

// Kind implements Ask.
func (AskAggregate) Kind() MultipartKind { return KindAggregate }

// Kind implements Ask.
func (AskPorts) Kind() MultipartKind { return KindPorts }

// Kind implements Ask.
func (AskPortStats) Kind() MultipartKind { return KindPortStats }

// Kind implements Ask.
func (AskGroups) Kind() MultipartKind { return KindGroupDescs }

// Kind implements Ask.
func (AskGroupStats) Kind() MultipartKind { return KindGroupStats }

// Kind implements Ask.
func (AskMeters) Kind() MultipartKind { return KindMeters }

// Kind implements Ask.
func (AskMeterStats) Kind() MultipartKind { return KindMeterStats }

func (a *FlowFilter) layout(c *codec) {
	u8(c, &a.Table)
	c.pad(3)
	opt32(c, &a.OutPort, absent)
	opt32(c, &a.OutGroup, absent)
	c.pad(4)
	u64(c, &a.Cookie)
	u64(c, &a.CookieMask)
	a.Match.layout(c)
}

// layoutOne is which one is asked about.
func layoutOne[T ~uint32](c *codec, one *Opt[T], all T) {
	opt32(c, one, uint32(all))
	c.pad(4)
}

func (a *AskPortStats) layout(c *codec)  { layoutOne(c, &a.Port, PortAny) }
func (a *AskGroupStats) layout(c *codec) { layoutOne(c, &a.Group, AllGroups) }
func (a *AskMeters) layout(c *codec)     { layoutOne(c, &a.Meter, AllMeters) }
func (a *AskMeterStats) layout(c *codec) { layoutOne(c, &a.Meter, AllMeters) }

func (a *AskPorts) layout(c *codec) {
	c.only(V15, a.Port.Set, "a question about one port's description")
	if c.v >= V15 {
		layoutOne(c, &a.Port, PortAny)
	}
}

func (a *AskGroups) layout(c *codec) {
	c.only(V15, a.Group.Set, "a question about one group's description")
	if c.v >= V15 {
		layoutOne(c, &a.Group, AllGroups)
	}
}
