-- A dissector of Scaffold for Wireshark and tshark (4.0 or later): messages between hosts and routers (UDP port 23727,
-- docs/protocol.md, sections 4 and 6), and what the IPv6 addresses of flows mean (section 2).
--
--   scaffold monitoring dissector > ~/.local/lib/wireshark/plugins/scaffold.lua
--   tshark -X lua_script:scaffold.lua -r flows.pcap -Y scaffold
--
-- Networks with an address plan of their own set the preferences "services" and "as" of the protocol.

local scaffold = Proto("scaffold", "Scaffold")

scaffold.prefs.services = Pref.string("Prefix of service addresses", "fd5c::/32", "scaffold status shows it")
scaffold.prefs.as = Pref.string("Prefix of locators", "fd5d:0:1::/48", "scaffold status shows it")

local types = {
  [1] = "HELLO", [2] = "SOLICIT", [3] = "PROBE", [4] = "PROBE-ACK", [5] = "FAIL", [6] = "BOUND",
  [7] = "RSYN", [8] = "RSYN-ACK", [9] = "RACK", [10] = "RESUME", [11] = "FLOW-FAIL",
  [12] = "LINK",
}
local reasons = {
  [1] = "no socket", [2] = "process died", [3] = "draining", [4] = "host gone", [5] = "no instance",
  [6] = "refused", [7] = "committed elsewhere", [8] = "unreachable",
}
local protocols = { [6] = "TCP", [17] = "UDP", [58] = "ICMPv6" }
local kinds = {
  service = "service", unresolved = "unresolved in its AS", first = "first packet at its host",
  bound = "bound", host = "the host itself",
}

local f = {
  version = ProtoField.uint8("scaffold.version", "Version"),
  type = ProtoField.uint8("scaffold.type", "Type", base.DEC, types),
  length = ProtoField.uint16("scaffold.length", "Length", base.UNIT_STRING, { " bytes" }),
  key = ProtoField.uint32("scaffold.key", "Key id", base.HEX),
  nonce = ProtoField.uint64("scaffold.nonce", "Nonce", base.HEX),
  locator = ProtoField.string("scaffold.locator", "Locator"),
  old = ProtoField.string("scaffold.old", "Locator that was confirmed last"),
  hello_service = ProtoField.bool("scaffold.hello.service", "Resolves names", 8, nil, 0x01),
  hello_relay = ProtoField.bool("scaffold.hello.relay", "Carries control channels", 8, nil, 0x02),
  hello_port = ProtoField.uint16("scaffold.hello.relay_port", "TCP port of the relay"),
  name = ProtoField.string("scaffold.name", "Name"),
  port = ProtoField.string("scaffold.port", "Port"),
  reason = ProtoField.uint8("scaffold.reason", "Reason", base.DEC, reasons),
  count = ProtoField.uint8("scaffold.flows", "Flows"),
  claim = ProtoField.none("scaffold.claim", "Claim"),
  failed = ProtoField.none("scaffold.failed", "Flow"),
  stable = ProtoField.ipv6("scaffold.stable", "Stable identifier"),
  epoch = ProtoField.uint32("scaffold.epoch", "Epoch"),
  seen = ProtoField.uint32("scaffold.seen", "Epoch of the other end that was seen"),
  socket = ProtoField.uint64("scaffold.socket", "Sender's socketID", base.HEX),
  quote = ProtoField.uint64("scaffold.quote", "Receiver's socketID", base.HEX),
  bound = ProtoField.uint64("scaffold.bound", "Server's socketID", base.HEX),
  server = ProtoField.bool("scaffold.server", "Sender is the server's end", 8, nil, 0x01),
  chain = ProtoField.uint64("scaffold.chain", "Earlier socketID", base.HEX),
  service = ProtoField.string("scaffold.service", "serviceID"),
  proto = ProtoField.uint8("scaffold.proto", "Protocol", base.DEC, protocols),
  sack = ProtoField.bool("scaffold.sack", "SACK", 8, nil, 0x01),
  timestamps = ProtoField.bool("scaffold.timestamps", "Timestamps", 8, nil, 0x02),
  scales = ProtoField.bool("scaffold.scales", "Window scales", 8, nil, 0x04),
  client_scale = ProtoField.uint8("scaffold.client_scale", "Client's window scale"),
  server_scale = ProtoField.uint8("scaffold.server_scale", "Server's window scale"),
  client_port = ProtoField.uint16("scaffold.client_port", "Client's port"),
  server_port = ProtoField.uint16("scaffold.server_port", "Server's port"),
  mss = ProtoField.uint16("scaffold.mss", "MSS"),
  snd_una = ProtoField.uint32("scaffold.snd_una", "snd_una"),
  rcv_nxt = ProtoField.uint32("scaffold.rcv_nxt", "rcv_nxt"),
  tsval = ProtoField.uint32("scaffold.tsval", "Timestamp"),
  tsecr = ProtoField.uint32("scaffold.tsecr", "Timestamp echo"),
  sent = ProtoField.uint64("scaffold.sent", "Bytes sent"),
  received = ProtoField.uint64("scaffold.received", "Bytes received"),
  certificate = ProtoField.none("scaffold.certificate", "Certificate"),
  succession = ProtoField.none("scaffold.succession", "Succession"),
  succ_origin = ProtoField.bytes("scaffold.succession.origin", "Host's first key"),
  cert_key = ProtoField.bytes("scaffold.certificate.key", "Host's key"),
  cert_from = ProtoField.absolute_time("scaffold.certificate.not_before", "Not before", base.UTC),
  cert_to = ProtoField.absolute_time("scaffold.certificate.not_after", "Not after", base.UTC),
  cert_sig = ProtoField.bytes("scaffold.certificate.signature", "Network's signature"),
  signature = ProtoField.bytes("scaffold.signature", "Host's signature"),
  src_kind = ProtoField.string("scaffold.src.kind", "Source is"),
  src_locator = ProtoField.string("scaffold.src.locator", "Source locator"),
  src_socket = ProtoField.uint64("scaffold.src.socket", "Source socketID", base.HEX),
  dst_kind = ProtoField.string("scaffold.dst.kind", "Destination is"),
  dst_locator = ProtoField.string("scaffold.dst.locator", "Destination locator"),
  dst_socket = ProtoField.uint64("scaffold.dst.socket", "Destination socketID", base.HEX),
  dst_service = ProtoField.string("scaffold.dst.service", "Destination serviceID"),
  dst_suffix = ProtoField.uint64("scaffold.dst.suffix", "Destination suffix", base.HEX),
  retry = ProtoField.uint8("scaffold.retry", "Retry count"),
}
scaffold.fields = f

local malformed = ProtoExpert.new("scaffold.malformed", "Malformed message", expert.group.MALFORMED, expert.severity.ERROR)
local unsigned = ProtoExpert.new("scaffold.unsigned", "Not signed: the network is open", expert.group.SECURITY, expert.severity.NOTE)
scaffold.experts = { malformed, unsigned }

-- groups are the 16-bit groups of a range of bytes.
local function groups(range)
  local out = {}
  for i = 0, range:len() - 2, 2 do out[#out + 1] = string.format("%x", range(i, 2):uint()) end
  return table.concat(out, ":")
end

local function locator(range) return groups(range) .. "::/64" end

-- serviceid is written as the product writes it: ssID and suffix.
local function serviceid(ss, suffix) return string.format("%08x-", ss:uint()) .. suffix:bytes():tohex(true) end

-- A cursor reads fields one after the other and adds them to a tree. What does not fit is an error of Lua, which the
-- caller turns into the expert item.
local function cursor(tvb, at)
  local c = { at = at or 0 }
  function c.take(n)
    local range = tvb(c.at, n)
    c.at = c.at + n
    return range
  end
  function c.add(tree, field, n) return tree:add(field, c.take(n)) end
  function c.text(tree, field, n, make)
    local range = c.take(n)
    local s = make and make(range) or range:string()
    tree:add(field, range, s)
    return s
  end
  function c.skip(n) c.take(n) end
  return c
end

local function claim(c, tree)
  local from, sub = c.at, tree:add(f.claim)
  c.add(sub, f.stable, 16)
  c.add(sub, f.epoch, 4)
  c.add(sub, f.seen, 4)
  c.add(sub, f.socket, 8)
  c.add(sub, f.quote, 8)
  c.add(sub, f.server, 1)
  local earlier = c.take(1):uint()
  c.skip(2)
  for _ = 1, earlier do c.add(sub, f.chain, 8) end
  sub:set_len(c.at - from)
end

-- time is a number of seconds since 1970 in 8 bytes.
local function time(c, tree, field)
  local range = c.take(8)
  tree:add(field, range, NSTime.new(range:uint64():tonumber()))
end

local function authenticity(c, tree)
  local certificates, flags = c.take(1):uint(), c.take(1):uint()
  c.skip(2)
  for _ = 1, certificates do
    local from, sub = c.at, tree:add(f.certificate)
    c.add(sub, f.cert_key, 32)
    sub:append_text(": " .. c.text(sub, f.locator, 8, locator))
    time(c, sub, f.cert_from)
    time(c, sub, f.cert_to)
    c.add(sub, f.cert_sig, 64)
    sub:set_len(c.at - from)
  end
  if flags % 4 > 1 then
    local from, sub = c.at, tree:add(f.succession)
    c.add(sub, f.succ_origin, 32)
    time(c, sub, f.cert_from)
    time(c, sub, f.cert_to)
    c.add(sub, f.cert_sig, 64)
    sub:set_len(c.at - from)
  end
  if flags % 2 == 1 then
    c.add(tree, f.signature, 64)
  else
    tree:add_proto_expert_info(unsigned)
  end
end

local body = {}

body[1] = function(c, tree)
  local flags = c.take(1)
  tree:add(f.hello_service, flags)
  tree:add(f.hello_relay, flags)
  local name, port = c.take(1):uint(), c.take(1):uint()
  c.skip(1)
  c.add(tree, f.hello_port, 2)
  c.skip(2)
  c.text(tree, f.locator, 8, locator)
  return c.text(tree, f.name, name) .. ", port " .. c.text(tree, f.port, port)
end

body[2] = function(c, tree)
  local name = c.take(1):uint()
  c.skip(3)
  return c.text(tree, f.name, name)
end

body[3] = function() end -- the bare header
body[4] = body[3]

body[5] = function(c, tree, tvb, pinfo)
  local reason = c.add(tree, f.reason, 1) and tvb(c.at - 1, 1):uint()
  c.skip(3)
  local quote = tvb(c.at):tvb()
  c.at = tvb:len()
  local columns = tostring(pinfo.cols.info) -- the quoted packet writes its own
  pcall(function() Dissector.get("ipv6"):call(quote, pinfo, tree) end)
  pinfo.cols.info = columns
  return reasons[reason] or "reason " .. reason
end

body[6] = function(c, tree) c.add(tree, f.bound, 8) end

local function renegotiate(c, tree)
  local to = c.text(tree, f.locator, 8, locator)
  local from = c.text(tree, f.old, 8, locator)
  local n = c.take(1)
  tree:add(f.count, n)
  c.skip(3)
  for _ = 1, n:uint() do claim(c, tree) end
  authenticity(c, tree)
  return string.format("%d flows, %s to %s", n:uint(), from, to)
end
body[7], body[8], body[9] = renegotiate, renegotiate, renegotiate

body[10] = function(c, tree, tvb)
  c.text(tree, f.locator, 8, locator)
  claim(c, tree)
  local ss, suffix = c.take(4), c.take(8)
  local service = serviceid(ss, suffix)
  tree:add(f.service, tvb(c.at - 12, 12), service)
  c.add(tree, f.proto, 1)
  local flags = c.take(1)
  for _, field in ipairs({ f.sack, f.timestamps, f.scales }) do tree:add(field, flags) end
  for _, x in ipairs({ { f.client_scale, 1 }, { f.server_scale, 1 }, { f.client_port, 2 }, { f.server_port, 2 }, { f.mss, 2 } }) do
    c.add(tree, x[1], x[2])
  end
  c.skip(2)
  for _, field in ipairs({ f.snd_una, f.rcv_nxt, f.tsval, f.tsecr }) do c.add(tree, field, 4) end
  c.add(tree, f.sent, 8)
  c.add(tree, f.received, 8)
  authenticity(c, tree)
  return service
end

body[11] = function(c, tree, tvb)
  c.text(tree, f.locator, 8, locator)
  c.add(tree, f.reason, 1)
  local reason, n = tvb(c.at - 1, 1):uint(), c.take(1)
  tree:add(f.count, n)
  c.skip(2)
  for _ = 1, n:uint() do
    local sub = tree:add(f.failed, tvb(c.at, 40))
    c.add(sub, f.stable, 16)
    c.add(sub, f.epoch, 4)
    c.add(sub, f.server, 1)
    c.skip(3)
    c.add(sub, f.quote, 8)
    c.add(sub, f.socket, 8)
  end
  authenticity(c, tree)
  return string.format("%d flows: %s", n:uint(), reasons[reason] or "reason " .. reason)
end

function scaffold.dissector(tvb, pinfo, root)
  if tvb:len() < 16 or tvb(0, 1):uint() ~= 1 then return 0 end
  pinfo.cols.protocol = "Scaffold"
  local tree, c = root:add(scaffold, tvb()), cursor(tvb)
  c.add(tree, f.version, 1)
  c.add(tree, f.type, 1)
  c.add(tree, f.length, 2)
  c.add(tree, f.key, 4)
  c.add(tree, f.nonce, 8)
  local kind = tvb(1, 1):uint()
  local name = types[kind] or "type " .. kind
  pinfo.cols.info = name
  tree:append_text(", " .. name)
  local read = body[kind]
  if not read then return tvb:len() end
  local ok, what = pcall(read, c, tree, tvb, pinfo)
  if not ok or c.at ~= tvb:len() or tvb(2, 2):uint() ~= tvb:len() then
    tree:add_proto_expert_info(malformed)
  elseif what then
    pinfo.cols.info = name .. " " .. what
  end
  return tvb:len()
end

DissectorTable.get("udp.port"):add(23727, scaffold)

-- What addresses mean, for every IPv6 packet: a postdissector.

local addresses = Proto("scaffold_addresses", "Scaffold addresses")
local ip_src, ip_dst, ip_label = Field.new("ipv6.src"), Field.new("ipv6.dst"), Field.new("ipv6.flow")

-- prefix turns "fd5c::/32" into the bytes that it fixes. It wants whole groups, as all of our prefixes are.
local function prefix(text)
  local address, bits = text:match("^([%x:]+)/(%d+)$")
  if not address or bits % 16 ~= 0 then return nil end
  local bytes, before = {}, address:match("^(.-)::") or address
  for group in before:gmatch("%x+") do
    local n = tonumber(group, 16)
    bytes[#bytes + 1], bytes[#bytes + 2] = math.floor(n / 256), n % 256
  end
  while #bytes < bits / 8 do bytes[#bytes + 1] = 0 end
  return bytes, bits / 8
end

local function within(range, text)
  local bytes, n = prefix(text)
  if not bytes then return false end
  for i = 1, n do
    if range(i - 1, 1):uint() ~= bytes[i] then return false end
  end
  return true
end

local function meaning(tree, range, side)
  if within(range, scaffold.prefs.services) then
    tree:add(f[side .. "_kind"], range, kinds.service)
    if side == "dst" then tree:add(f.dst_service, range(4, 12), serviceid(range(4, 4), range(8, 8))) end
    return true
  end
  if not within(range, scaffold.prefs.as) then return false end
  local low = range(8, 8)
  local top, host = low(0, 1):uint(), range(6, 2):uint()
  tree:add(f[side .. "_locator"], range(0, 8), locator(range(0, 8)))
  if top >= 0x80 then
    tree:add(f[side .. "_kind"], range, kinds.bound)
    tree:add(f[side .. "_socket"], low)
  elseif low:uint64() == UInt64(1) then
    tree:add(f[side .. "_kind"], range, kinds.host)
  else
    tree:add(f[side .. "_kind"], range, host == 0 and kinds.unresolved or kinds.first)
    if side == "dst" then tree:add(f.dst_suffix, low) end
  end
  return true
end

function addresses.dissector(_, _, root)
  local src, dst, label = ip_src(), ip_dst(), ip_label()
  if not src or not dst then return end
  local tree = root:add(addresses)
  local any = meaning(tree, src.range, "src")
  any = meaning(tree, dst.range, "dst") or any
  if any and label and label.value < 4 then tree:add(f.retry, label.range, label.value) end
  if not any then tree:set_hidden() end
end

register_postdissector(addresses)
