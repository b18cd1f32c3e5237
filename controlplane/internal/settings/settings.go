// Package settings is the command line of the control plane.
package settings

import (
	"flag"
	"fmt"
	"io"
	"net/netip"

	"github.com/xpkg-dev/xpkg/controlplane/internal/report"
)

// Settings are the flags, checked.
type Settings struct {
	// DataDir is the directory of all persistent data.
	DataDir string
	// Address is the IP address to listen on.
	Address string
	// Port is the port of the API server; 0 asks for the one that the data
	// directory remembers, or for a free one.
	Port int
	// Throwaway lets etcd write without fsync and removes the state at the end. It
	// is for tests.
	Throwaway bool
	// CRDOpenAPI publishes the schemas of custom resources in OpenAPI.
	CRDOpenAPI bool
	// Policies is the directory of admission policies that no client of the API can change; empty means none.
	Policies string
	// Stay keeps the control plane running when its standard input ends.
	Stay bool
	// Version asks for the versions, and nothing else.
	Version bool
	// Verbosity is the level of the log; at 0 it has warnings and errors only.
	Verbosity int
}

const about = `Usage: xpkg-controlplane --data-dir DIR [flags]

Runs etcd, kube-apiserver and the controllers that packages need in one process,
on the loopback interface. When it answers requests it prints one line of JSON
with the address and the kubeconfig, and a second one when all its health checks
have passed and the controllers work; when it cannot start, one line with the reason. It stops on SIGTERM, on SIGINT, and when its standard input ends, so that
it never outlives the program that started it.

Flags:
`

// Parse parses the command line. It returns flag.ErrHelp after it has written the help to help, and an error with the
// code Usage for an invalid flag.
func Parse(args []string, help io.Writer) (Settings, error) {
	var s Settings
	flags := flag.NewFlagSet("xpkg-controlplane", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	flags.StringVar(&s.DataDir, "data-dir", "", "`directory` that keeps the state (required)")
	flags.StringVar(&s.Address, "address", "127.0.0.1", "IP `address` to listen on")
	flags.IntVar(&s.Port, "port", 0, "`port` of the API server; 0 takes the port of the last start, or a free one")
	flags.BoolVar(&s.Throwaway, "throwaway", false, "write without fsync, and remove the state at the end; for tests")
	flags.BoolVar(
		&s.CRDOpenAPI, "crd-openapi", false,
		"publish the schemas of custom resources in OpenAPI; costs much memory when there are many,\nbut without it \"kubectl explain\" and client-side validation do not know custom resources",
	)
	flags.StringVar(
		&s.Policies, "policies", "", "`directory` of ValidatingAdmissionPolicies and their bindings that no client of the API can change",
	)
	flags.BoolVar(&s.Stay, "stay", false, "keep running when standard input ends")
	flags.BoolVar(&s.Version, "version", false, "print the versions and stop")
	flags.IntVar(&s.Verbosity, "v", 0, "`level` of the log; 0 has warnings and errors only")
	if err := flags.Parse(args); err != nil {
		if err == flag.ErrHelp {
			fmt.Fprint(help, about)
			flags.SetOutput(help)
			flags.PrintDefaults()
			return s, err
		}
		return s, report.Fail(report.Usage, err, "cannot read the command line")
	}
	if s.Version {
		return s, nil
	}
	return s, s.check(flags.Args())
}

func (s Settings) check(rest []string) error {
	if len(rest) > 0 {
		return report.Fail(report.Usage, nil, "unexpected argument %q", rest[0])
	}
	if s.DataDir == "" {
		return report.Fail(report.Usage, nil, "--data-dir is required")
	}
	if _, err := netip.ParseAddr(s.Address); err != nil {
		return report.Fail(report.Usage, nil, "--address %q is not an IP address", s.Address)
	}
	if s.Port < 0 || s.Port > 65535 {
		return report.Fail(report.Usage, nil, "--port %d is not a port: use 0 to 65535", s.Port)
	}
	return nil
}
