package v1

import (
	"strings"
	"testing"
)

func TestSecretNames(t *testing.T) {
	long := TLSServerSecretName(strings.Repeat("a", 241) + "-" + strings.Repeat("b", 60))
	if len(long) > maxSecretName || !strings.HasSuffix(long, "a-tls-server") {
		t.Errorf("%d characters: %s", len(long), long)
	}
	if got := TLSClientSecretName("provider-x"); got != "provider-x-tls-client" {
		t.Error(got)
	}
}
