package datadir

import (
	"errors"
	"math/rand/v2"
	"net"
	"os"
	"strconv"
	"strings"
	"syscall"

	"github.com/xpkg-dev/xpkg/controlplane/internal/report"
)

// Listen opens the port of the API server. Port 0 stands for the port of the last
// start, or for a free one when there is none; the port is written down once it is
// open. It fails with the code PortInUse when another program has the port, and
// does not move to another one then: people have the old one in their kubeconfigs.
func (d *Dir) Listen(address string, port int) (*net.TCPListener, error) {
	if port == 0 {
		port = d.lastPort()
	}
	listener, err := listen(address, port)
	if errors.Is(err, syscall.EADDRINUSE) {
		return nil,
			report.Fail(report.PortInUse, nil, "port %d of %s, for the API server, is used by another program", port, address)
	}
	if err != nil {
		return nil, report.Fail(report.StartFailed, err, "cannot open a port for the API server")
	}
	port = listener.Addr().(*net.TCPAddr).Port
	if err := os.WriteFile(d.portFile(), []byte(strconv.Itoa(port)+"\n"), 0o600); err != nil {
		return nil, errors.Join(report.Fail(report.DataDirUnusable, err, "cannot remember the port"), listener.Close())
	}
	return listener, nil
}

// Free ports are selected below the range for outgoing connections: otherwise a client, even one that connects to
// this server, could occupy the port while the server restarts.
const (
	lowestPort  = 20000
	highestPort = 29999
	portTries   = 100
)

// listen opens a port, or a free one for 0.
func listen(address string, port int) (listener *net.TCPListener, err error) {
	at := &net.TCPAddr{IP: net.ParseIP(address), Port: port}
	if port != 0 {
		return net.ListenTCP("tcp", at)
	}
	for range portTries {
		at.Port = lowestPort + rand.IntN(highestPort-lowestPort+1) // It need not be a secret.
		if listener, err = net.ListenTCP("tcp", at); !errors.Is(err, syscall.EADDRINUSE) {
			break
		}
	}
	return listener, err
}

// lastPort returns the port of the last start, or 0. A damaged file counts as none.
func (d *Dir) lastPort() int {
	content, err := os.ReadFile(d.portFile())
	if err != nil {
		return 0
	}
	port, err := strconv.ParseUint(strings.TrimSpace(string(content)), 10, 16)
	if err != nil {
		return 0
	}
	return int(port)
}
