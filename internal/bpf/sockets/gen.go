package sockets

//go:generate go tool bpf2go -cc clang-19 -target bpfel,bpfeb -type host_row -type sock_row -type sock_event hooks sockets.bpf.c -- -O2 -g -Wall -Werror -I/usr/include/x86_64-linux-gnu
//go:generate go tool bpf2go -cc clang-19 -target bpfel,bpfeb rewrite rewrite.bpf.c -- -O2 -g -Wall -Werror -I/usr/include/x86_64-linux-gnu
