package up

import (
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
	"syscall"

	"github.com/xpkg-dev/xpkg/internal/up/datadir"

	"github.com/xpkg-dev/xpkg/internal/ports"
	"github.com/xpkg-dev/xpkg/pkg/errcode"
)

// The default ports of "xpkg up".
const (
	DefaultPort         = 16443
	DefaultRegistryPort = 15000
	// LastPort stands for the port of the last start, or for the default port in a
	// new data directory.
	LastPort = -1
)

const (
	// apiPortName is written by the child.
	apiPortName      = "apiserver.port"
	registryPortName = "registry.port"
	loopback         = "127.0.0.1"
)

// openPorts proves that the ports are free before anything is started, opens the
// port of the registry, and returns the port of the API server; 0 lets the child
// choose a free one. A port that clients know from an earlier start is never replaced
// by another one: kubeconfigs and installed packages name it.
func openPorts(o Options, d *datadir.Dir) (net.Listener, int, error) {
	port, known := chosenPort(d, o.Port, apiPortName, DefaultPort)
	if port != 0 {
		probe, err := listen(port, "the API server", "--port")
		if err != nil {
			return nil, 0, keptPort(err, known, "kubeconfigs", "--port")
		}
		if err := probe.Close(); err != nil {
			return nil, 0, err
		}
	}
	registryPort, known := chosenPort(d, o.RegistryPort, registryPortName, DefaultRegistryPort)
	if known != 0 && known != registryPort {
		o.Progress(Event{Stage: StageRegistry, Warning: fmt.Sprintf(
			"the registry moves from %[1]s:%[2]d to %[1]s:%[3]d; packages that were installed from %[1]s:%[2]d cannot be fetched there any more. "+
				"Start with --registry-port %[2]d to keep the address", loopback, known, registryPort)})
	}
	listener, err := openRegistryPort(d, registryPort)
	return listener, port, keptPort(err, known, "installed packages", "--registry-port")
}

// chosenPort returns the port for a start, and the port of the last one; 0 where
// there is none.
func chosenPort(d *datadir.Dir, asked int, name string, standard int) (port, known int) {
	known = lastPort(d, name)
	switch {
	case asked > 0:
		return asked, known
	case known != 0:
		return known, known
	case asked == LastPort:
		return standard, 0
	}
	return 0, 0
}

// keptPort adds to the failure of a port that it was kept from an earlier start.
func keptPort(err error, known int, who, flag string) error {
	if err == nil || known == 0 {
		return err
	}
	f := errcode.From(err)
	address := net.JoinHostPort(loopback, strconv.Itoa(known))
	return f.Code.New(f.Why, "%s", f.What).WithDo(
		"Stop the program that listens on %s and run the same command again: %s name this address since an earlier start. "+
			"To use another port, set %s.", address, who, flag)
}

func openRegistryPort(d *datadir.Dir, port int) (net.Listener, error) {
	listener, err := listen(port, "the registry", "--registry-port")
	if err != nil {
		return nil, err
	}
	port = listener.Addr().(*net.TCPAddr).Port
	if err := datadir.WriteFile(d.File(registryPortName), []byte(strconv.Itoa(port)+"\n")); err != nil {
		return nil, errors.Join(ErrDataDirUnusable.New(err, "cannot remember the port of the registry"), listener.Close())
	}
	return listener, nil
}

// listen opens a port of the loopback interface. Its error names the part that needs the
// port, and the flag that selects another one.
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

// lastPort returns the port that a file of the directory keeps. A missing or damaged
// file counts as 0.
func lastPort(d *datadir.Dir, name string) int {
	content, err := os.ReadFile(d.File(name))
	if err != nil {
		return 0
	}
	last, err := strconv.ParseUint(strings.TrimSpace(string(content)), 10, 16)
	if err != nil {
		return 0
	}
	return int(last)
}
