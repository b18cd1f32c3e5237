package sandbox

import (
	"errors"
	"fmt"
	"strconv"
	"testing"

	"golang.org/x/sys/unix"
)

// A runtime can make sockets of the network and of its own processes, as on the machine,
// and no others: AF_VSOCK reaches the hypervisor, and most other families are seldom used
// code of the kernel.
//
// hardening: H14
func TestRuntimeMakesOnlyNetworkSockets(t *testing.T) {
	stream, datagram, raw := unix.SOCK_STREAM, unix.SOCK_DGRAM, unix.SOCK_RAW
	type socket struct{ family, kind, protocol int }
	allowed := map[socket]bool{
		{unix.AF_UNIX, stream, 0}: true, {unix.AF_UNIX, datagram, 0}: true, {unix.AF_UNIX, raw, 0}: true,
		{unix.AF_UNIX, unix.SOCK_SEQPACKET, 0}:     true,
		{unix.AF_NETLINK, raw, unix.NETLINK_ROUTE}: true, {unix.AF_NETLINK, datagram, unix.NETLINK_ROUTE}: true,
	}
	for family, icmp := range map[int]int{unix.AF_INET: unix.IPPROTO_ICMP, unix.AF_INET6: unix.IPPROTO_ICMPV6} {
		for _, s := range []socket{
			{family, stream, 0}, {family, stream, unix.IPPROTO_TCP}, {family, stream, unix.IPPROTO_MPTCP},
			{family, datagram, 0}, {family, datagram, unix.IPPROTO_UDP}, {family, datagram, icmp},
		} {
			allowed[s] = true
		}
	}
	var all []socket
	for family := range 256 {
		for _, kind := range []int{
			stream, datagram, raw, unix.SOCK_RDM, unix.SOCK_SEQPACKET, unix.SOCK_DCCP, unix.SOCK_PACKET,
		} {
			all = append(all, socket{family, kind, 0})
		}
	}
	for _, protocol := range []int{
		unix.NETLINK_USERSOCK, unix.NETLINK_SOCK_DIAG, unix.NETLINK_NETFILTER, unix.NETLINK_KOBJECT_UEVENT,
		unix.NETLINK_GENERIC, unix.NETLINK_CRYPTO,
	} {
		all = append(all, socket{unix.AF_NETLINK, raw, protocol})
	}
	for _, family := range []int{unix.AF_INET, unix.AF_INET6} {
		for _, protocol := range []int{
			unix.IPPROTO_SCTP, unix.IPPROTO_DCCP, unix.IPPROTO_UDPLITE, 115 /* L2TP */, 256, /* SMC */
		} {
			all = append(all, socket{family, stream, protocol}, socket{family, datagram, protocol})
		}
	}
	for s := range allowed {
		all = append(all, s)
	}
	refusals := map[string]bool{
		number(unix.EAFNOSUPPORT): true, number(unix.ESOCKTNOSUPPORT): true, number(unix.EPROTONOSUPPORT): true,
	}

	forEachIsolation(t, func(t *testing.T, s *Supervisor) {
		spec := spec(t, "connected")
		begin(t, s, spec)
		for _, socket := range all {
			argument := fmt.Sprintln(socket.family, socket.kind|unix.SOCK_CLOEXEC, socket.protocol)
			got := ""
			if _, err := ask(spec, "socket", argument); err != nil {
				got = err.Error()
			}
			switch {
			case allowed[socket]:
				fd, err := unix.Socket(socket.family, socket.kind|unix.SOCK_CLOEXEC, socket.protocol)
				if err == nil {
					unix.Close(fd)
				}
				if socket.protocol != unix.IPPROTO_ICMP && socket.protocol != unix.IPPROTO_ICMPV6 && got != number(err) {
					t.Errorf("%+v fails with the error %q in the runtime, and with %v on this machine", socket, got, err)
				}
			case !refusals[got]:
				t.Errorf("%+v is not refused: %q", socket, got)
			}
		}
	})
}

// number returns the number of an error, and an empty string for nil.
func number(err error) string {
	var errno unix.Errno
	if !errors.As(err, &errno) {
		return ""
	}
	return strconv.Itoa(int(errno))
}
