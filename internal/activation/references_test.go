package activation

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/xpkg-dev/xpkg/pkg/xpkg"
)

// offering returns the kinds of a Provider with CRDs, each as GROUP/KIND and the JSON of the properties of its spec.
func offering(t *testing.T, crds ...[2]string) []Kind {
	t.Helper()
	text := "apiVersion: meta.pkg.crossplane.io/v1\nkind: Provider\nmetadata: {name: p}\n"
	for _, c := range crds {
		group, kind, _ := strings.Cut(c[0], "/")
		plural := strings.ToLower(kind) + "s"
		text += fmt.Sprintf(`---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: %[2]s.%[1]s}
spec:
  group: %[1]s
  names: {kind: %[3]s, plural: %[2]s, categories: [managed]}
  scope: Cluster
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, properties: {%[4]s}}}}}
`, group, plural, kind, c[1])
	}
	pkg, err := xpkg.Read([]byte(text), xpkg.ReadOptions{})
	if err != nil {
		t.Fatal(err)
	}
	kinds, err := OfferedBy(pkg)
	if err != nil {
		t.Fatal(err)
	}
	return kinds
}

// Fields of active kinds show which inactive ones may be needed: by the description of the field, which names the group
// too, or by its name within the group. The variants for namespaces refer to each other, and kinds that are active
// are not reported.
func TestMayNeed(t *testing.T) {
	field := func(name, description string) string {
		return fmt.Sprintf("%s: {type: object, description: %q}", name, description)
	}
	const bucket = "Reference to a Bucket in s3 to populate bucket."
	offered := offering(t,
		[2]string{"s3.aws.acme.org/Bucket", ""},
		[2]string{"s3.aws.m.acme.org/Bucket", ""},
		[2]string{"s3.aws.acme.org/BucketPolicy", field("bucketRef", bucket) + ", " + field("policySelector", "Selects.")},
		[2]string{"s3.aws.m.acme.org/BucketPolicy", field("bucketRef", bucket)},
		[2]string{"ec2.aws.acme.org/Subnet", field("vpcIdRef", "A reference.")},
		[2]string{"ec2.aws.acme.org/VPC", field("subnetIdRefs", "References to Subnet in ec2 to populate subnetIds.")},
		[2]string{"db.azure.acme.org/Server", field("groupRef", "Reference to a ResourceGroup in azure to populate group.")},
		[2]string{"azure.acme.org/ResourceGroup", ""},
		[2]string{"other.acme.org/VPC", ""},
	)
	for active, want := range map[string]map[string][]string{
		"": {},
		"bucketpolicys.s3.aws.acme.org": {
			"buckets.s3.aws.acme.org": {"bucketpolicys.s3.aws.acme.org"},
		},
		"bucketpolicys.s3.aws.m.acme.org": {
			"buckets.s3.aws.m.acme.org": {"bucketpolicys.s3.aws.m.acme.org"},
		},
		"bucketpolicys.s3.aws.acme.org buckets.s3.aws.acme.org": {},
		"subnets.ec2.aws.acme.org":                              {"vpcs.ec2.aws.acme.org": {"subnets.ec2.aws.acme.org"}},
		"vpcs.ec2.aws.acme.org":                                 {"subnets.ec2.aws.acme.org": {"vpcs.ec2.aws.acme.org"}},
		"servers.db.azure.acme.org": {
			"resourcegroups.azure.acme.org": {"servers.db.azure.acme.org"},
		},
	} {
		got, err := Needs{Safe: true, Choice: Choice{Patterns: strings.Fields(active)}}.Select(offered).MayNeed()
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("%s (-want +got):\n%s", active, d)
		}
	}
	all, err := Needs{Choice: Choice{All: true}}.Select(offered).MayNeed()
	if err != nil || len(all) > 0 {
		t.Errorf("with all kinds, %v may be needed (%v)", all, err)
	}
}
