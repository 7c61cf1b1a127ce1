package host

// The objects are committed; clang is needed only to change them.
//go:generate go tool bpf2go -cc clang-19 -strip llvm-strip-19 -no-global-types -type host_config -type slot -type place -type flow_key -type egress_flow -type ingress_flow -type service -type instance_key -type access_key -type policy -type event -type step -type meter -type session -type session_key -type adoption -type guest -type owner_key -type guest_space -type recent_peer_key -type recent_peer -type answer_ports -type host_reason edge edge.bpf.c -- -O2 -g -Wall -Werror -fno-strict-aliasing -mcpu=v3 -I/usr/include/x86_64-linux-gnu -I../include
