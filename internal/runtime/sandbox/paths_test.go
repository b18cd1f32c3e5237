package sandbox

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestTranslate(t *testing.T) {
	tr := translate(files{"/data"}, []string{"/tls/server/tls.crt", "/etc/kubeconfig"})
	got := tr.all([]string{
		"/tls/server", "/tls/server/", "--dir=/tls", "A=/etc/kubeconfig", "/tls/other", "tls", "/", "A=", "B=c=/tls",
	})
	want := []string{
		"/data/..data/tls/server", "/data/..data/tls/server", "--dir=/data/..data/tls", "A=/data/..data/etc/kubeconfig",
		"/tls/other", "tls", "/", "A=", "B=c=/tls",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
