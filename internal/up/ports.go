package up

import (
	"errors"
	"net"
	"os"
	"strconv"
	"strings"
	"syscall"

	"github.com/xpkg-dev/xpkg/internal/ports"
)

// The ports that "xpkg up" uses unless it is told otherwise.
const (
	DefaultPort         = 16443
	DefaultRegistryPort = 15000
)

const (
	// apiPortName is written by the child.
	apiPortName      = "apiserver.port"
	registryPortName = "registry.port"
	loopback         = "127.0.0.1"
)

// openPorts proves that the ports are free before anything is started, and opens
// that of the registry. Port 0 stands for the port of the last start, or for a free
// one.
func openPorts(d *directory, port, registryPort int) (net.Listener, error) {
	if port = orLast(d, port, apiPortName); port != 0 {
		probe, err := listen(port, "the API server", "--port")
		if err != nil {
			return nil, err
		}
		if err := probe.Close(); err != nil {
			return nil, err
		}
	}
	return openRegistryPort(d, orLast(d, registryPort, registryPortName))
}

func openRegistryPort(d *directory, port int) (net.Listener, error) {
	listener, err := listen(port, "the registry", "--registry-port")
	if err != nil {
		return nil, err
	}
	port = listener.Addr().(*net.TCPAddr).Port
	if err := replace(d.file(registryPortName), []byte(strconv.Itoa(port)+"\n")); err != nil {
		return nil, errors.Join(ErrDataDirUnusable.New(err, "cannot remember the port of the registry"), listener.Close())
	}
	return listener, nil
}

// listen opens a port of the loopback interface, or says who wanted it and which
// flag takes another.
func listen(port int, who, flag string) (net.Listener, error) {
	address := net.JoinHostPort(loopback, strconv.Itoa(port))
	if port == 0 {
		return anyPort(who, flag)
	}
	listener, err := net.Listen("tcp", address)
	if errors.Is(err, syscall.EADDRINUSE) {
		return nil, ErrPortInUse.New(nil, "port %d, which %s needs, is used by another program", port, who).
			WithDo("Stop the program that listens on %s, or choose another port with %s.", address, flag)
	}
	if err != nil {
		return nil, ErrPortInUse.New(err, "cannot open port %d, which %s needs", port, who).
			WithDo("Choose another port with %s.", flag)
	}
	return listener, nil
}

// anyPort opens a free port.
func anyPort(who, flag string) (net.Listener, error) {
	listener, err := ports.Listen(loopback)
	if err != nil {
		return nil, ErrPortInUse.New(err, "cannot open a port, which %s needs", who).WithDo("Choose one with %s.", flag)
	}
	return listener, nil
}

// orLast is the port, or for 0 the one that a file of the directory remembers. A
// missing or damaged file counts as 0.
func orLast(d *directory, port int, name string) int {
	if port != 0 {
		return port
	}
	content, err := os.ReadFile(d.file(name))
	if err != nil {
		return 0
	}
	last, err := strconv.ParseUint(strings.TrimSpace(string(content)), 10, 16)
	if err != nil {
		return 0
	}
	return int(last)
}
