package cli_test

import (
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"

	"github.com/google/go-containerregistry/pkg/crane"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/rogpeppe/go-internal/testscript"
)

// makeRuntime writes the image of a program, as another tool writes it:
// "runtime FILE OS/ARCH".
func makeRuntime(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: runtime FILE OS/ARCH")
	}
	img, err := crane.Image(map[string][]byte{"program": []byte("a program\n")})
	ts.Check(err)
	config, err := img.ConfigFile()
	ts.Check(err)
	config.OS, config.Architecture, _ = strings.Cut(args[1], "/")
	config.Config = v1.Config{Entrypoint: []string{"/program"}}
	img, err = mutate.ConfigFile(img, config)
	ts.Check(err)
	ts.Check(tarball.WriteToFile(ts.MkAbs(args[0]), name.MustParseReference("program"), img))
}

// pushRuntime brings such an image into a registry: "pushruntime FILE REF".
func pushRuntime(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: pushruntime FILE REF")
	}
	img, err := tarball.ImageFromPath(ts.MkAbs(args[0]), nil)
	ts.Check(err)
	ts.Check(crane.Push(img, args[1]))
}

// startDaemon serves images as a Docker daemon: "daemon SOCKET NAME=FILE...".
func startDaemon(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 1 {
		ts.Fatalf("usage: daemon SOCKET NAME=FILE...")
	}
	images := map[string]string{}
	for _, arg := range args[1:] {
		name, file, _ := strings.Cut(arg, "=")
		images["/images/"+url.PathEscape(name)+"/get"] = ts.MkAbs(file)
	}
	// The path of a socket is short, wherever the tests run.
	socket := ts.MkAbs(args[0])
	dir, err := os.MkdirTemp("", "xpkg")
	ts.Check(err)
	listener, err := net.Listen("unix", dir+"/docker.sock")
	ts.Check(err)
	ts.Check(os.Symlink(dir+"/docker.sock", socket))
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if file, ok := images[r.URL.EscapedPath()]; ok {
			http.ServeFile(w, r, file)
			return
		}
		http.Error(w, `{"message":"No such image"}`, http.StatusNotFound)
	})}
	go func() { _ = server.Serve(listener) }()
	ts.Defer(func() {
		_ = server.Close()
		_ = os.RemoveAll(dir)
	})
}
