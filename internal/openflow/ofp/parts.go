package ofp

// Flows are flows with what they have counted.
type Flows []Flow

// TablesStats are of all tables.
type TablesStats []TableStats

// Tables are the descriptions of tables.
type Tables []TableDesc

// Ports are descriptions of ports.
type Ports []PortDesc

// PortsStats are of one port or all.
type PortsStats []PortStats

// Groups are descriptions of groups.
type Groups []GroupDesc

// GroupsStats are of one group or all.
type GroupsStats []GroupStats

// Meters are one meter or all.
type Meters []Meter

// MetersStats are of one meter or all.
type MetersStats []MeterCounts

// Kind implements Part.
func (Flows) Kind() MultipartKind { return KindFlows }

// Kind implements Part.
func (TablesStats) Kind() MultipartKind { return KindTableStats }

// Kind implements Part.
func (Tables) Kind() MultipartKind { return KindTableDescs }

// Kind implements Part.
func (Ports) Kind() MultipartKind { return KindPorts }

// Kind implements Part.
func (PortsStats) Kind() MultipartKind { return KindPortStats }

// Kind implements Part.
func (Groups) Kind() MultipartKind { return KindGroupDescs }

// Kind implements Part.
func (GroupsStats) Kind() MultipartKind { return KindGroupStats }

// Kind implements Part.
func (Meters) Kind() MultipartKind { return KindMeters }

// Kind implements Part.
func (MetersStats) Kind() MultipartKind { return KindMeterStats }

// Kind implements Part.
func (GroupFeatures) Kind() MultipartKind { return KindGroupFeatures }

// Kind implements Part.
func (MeterFeatures) Kind() MultipartKind { return KindMeterFeatures }

func (s *Flows) layout(c *codec) { list(c, (*[]Flow)(s), func(e *Flow) { e.layout(c) }) }
func (s *TablesStats) layout(c *codec) {
	list(c, (*[]TableStats)(s), func(e *TableStats) { e.layout(c) })
}
func (s *Tables) layout(c *codec)     { list(c, (*[]TableDesc)(s), func(e *TableDesc) { e.layout(c) }) }
func (s *Ports) layout(c *codec)      { list(c, (*[]PortDesc)(s), func(e *PortDesc) { e.layout(c) }) }
func (s *PortsStats) layout(c *codec) { list(c, (*[]PortStats)(s), func(e *PortStats) { e.layout(c) }) }
func (s *Groups) layout(c *codec)     { list(c, (*[]GroupDesc)(s), func(e *GroupDesc) { e.layout(c) }) }
func (s *GroupsStats) layout(c *codec) {
	list(c, (*[]GroupStats)(s), func(e *GroupStats) { e.layout(c) })
}
func (s *Meters) layout(c *codec) { list(c, (*[]Meter)(s), func(e *Meter) { e.layout(c) }) }
func (s *MetersStats) layout(c *codec) {
	list(c, (*[]MeterCounts)(s), func(e *MeterCounts) { e.layout(c) })
}
