package origin

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/xpkg-dev/xpkg/apis/pkg/v1beta1"
	"github.com/xpkg-dev/xpkg/pkg/oci"
)

func TestFiles(t *testing.T) {
	configs := []v1beta1.ImageConfig{{Spec: v1beta1.ImageConfigSpec{
		MatchImages:  []v1beta1.ImageMatch{{Prefix: "xpkg.test"}},
		RewriteImage: &v1beta1.ImageRewrite{Prefix: "mirror.test/xpkg.test"},
	}}, {Spec: v1beta1.ImageConfigSpec{
		MatchImages: []v1beta1.ImageMatch{{Prefix: "mirror.test"}},
		Registry: &v1beta1.RegistryConfig{PlainHTTP: true, Authentication: &v1beta1.RegistryAuthentication{
			PullSecretRef: corev1.LocalObjectReference{Name: "secret"},
		}},
	}}}
	o, err := Files{Configs: configs}.Find(oci.MustParseReference("xpkg.test/a/b:v1"))
	if err != nil {
		t.Fatal(err)
	}
	if o.Ref.String() != "mirror.test/xpkg.test/a/b:v1" || len(o.Endpoints) != 1 || !o.Endpoints[0].PlainHTTP ||
		o.Endpoints[0].Secrets != nil {
		t.Errorf("%+v", o)
	}
	configs[0].Spec.RewriteImage.Prefix = ":"
	if _, err := (Files{Configs: configs}).Find(oci.MustParseReference("xpkg.test/a/b:v1")); err == nil {
		t.Error("a rewrite to nothing is taken")
	}
}
