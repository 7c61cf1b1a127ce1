# The peer of `scaffold bench reactive`: for each new flow that the switch punts it puts in an exact flow and
# sends the packet out. It takes the packet apart by hand, as ours does, and not by os-ken's decoder.
import struct
import sys
from socket import AF_INET6, inet_ntop

from os_ken import cfg
from os_ken.base import app_manager
from os_ken.controller import controller, ofp_event
from os_ken.controller.handler import CONFIG_DISPATCHER, MAIN_DISPATCHER, set_ev_cls
from os_ken.ofproto import ofproto_v1_3 as of

IPV6, UDP, IDLE = 0x86DD, 17, 10


class Reactive(app_manager.OSKenApp):
    OFP_VERSIONS = [of.OFP_VERSION]

    @set_ev_cls(ofp_event.EventOFPSwitchFeatures, CONFIG_DISPATCHER)
    def begin(self, ev):
        dp = ev.msg.datapath
        p = dp.ofproto_parser
        dp.send_msg(p.OFPFlowMod(dp, table_id=of.OFPTT_ALL, command=of.OFPFC_DELETE, out_port=of.OFPP_ANY, out_group=of.OFPG_ANY))
        punt = [p.OFPActionOutput(of.OFPP_CONTROLLER, of.OFPCML_NO_BUFFER)]
        self.add(dp, 0, 0, p.OFPMatch(eth_type=IPV6, ip_proto=UDP), punt)
        dp.send_msg(p.OFPBarrierRequest(dp))

    @set_ev_cls(ofp_event.EventOFPBarrierReply, [CONFIG_DISPATCHER, MAIN_DISPATCHER])
    def ready(self, ev):
        print("ready", flush=True)

    def add(self, dp, priority, idle, match, actions):
        p = dp.ofproto_parser
        apply = [p.OFPInstructionActions(of.OFPIT_APPLY_ACTIONS, actions)]
        dp.send_msg(p.OFPFlowMod(dp, priority=priority, idle_timeout=idle, match=match, instructions=apply))

    @set_ev_cls(ofp_event.EventOFPPacketIn, MAIN_DISPATCHER)
    def punted(self, ev):
        msg = ev.msg
        dp, data, port = msg.datapath, msg.data, msg.match["in_port"]
        p = dp.ofproto_parser
        if len(data) < 62:
            return
        src, dst, sport, dport = struct.unpack_from("!16s16sHH", data, 22)
        src, dst = inet_ntop(AF_INET6, src), inet_ntop(AF_INET6, dst)  # as its encoder wants them
        match = p.OFPMatch(in_port=port, eth_type=IPV6, ip_proto=UDP, ipv6_src=src, ipv6_dst=dst, udp_src=sport, udp_dst=dport)
        out = [p.OFPActionOutput(3 - port)]
        self.add(dp, 1, IDLE, match, out)
        dp.send_msg(p.OFPPacketOut(dp, buffer_id=of.OFP_NO_BUFFER, in_port=port, actions=out, data=data))


if __name__ == "__main__":
    cfg.CONF(["--ofp-listen-host=127.0.0.1", "--ofp-tcp-listen-port=" + sys.argv[1]], project="reactive")
    app_manager.AppManager.run_apps(["reactive"])
