package chart

import (
	"cmp"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"

	"github.com/xpkg-dev/xpkg/internal/bootstrap"
)

const (
	// marker is the prefix of placeholder words, and number the placeholder number.
	marker = "xpkgchart"
	number = 424242

	namespace = marker + "namespace"
)

// markers returns options with unique placeholders.
func markers() bootstrap.Options {
	return bootstrap.Options{
		Namespace: namespace, Image: marker + "image", ImagePullSecrets: []string{marker + "secret"}, Replicas: number,
		Resources:  corev1.ResourceRequirements{Limits: corev1.ResourceList{marker + "/resources": resource.MustParse("1")}},
		CacheClaim: marker + "claim", CacheLimit: "424242Gi",
		NodeSelector: map[string]string{marker: "x"}, Tolerations: []corev1.Toleration{{Key: marker + "toleration"}},
		Affinity: &corev1.Affinity{PodAffinity: &corev1.PodAffinity{}}, PriorityClassName: marker + "priority",
		PackageGroups: []string{marker + "group.example.org"}, PermissionPolicy: marker + "policy", RemoveOrphans: true,
		FirstGeneration: true,
		Indexes:         []string{marker + "index"}, IndexKeys: marker + "keys",
		Args:         []string{marker + "args"},
		CoreAccounts: []types.NamespacedName{{Namespace: marker + "core", Name: marker + "account"}},
	}
}

// conditions maps files to the condition under which they are rendered.
var conditions = map[string]string{
	"templates/networkpolicy.yaml":    ".Values.networkPolicy.enabled",
	"templates/crossplane-fence.yaml": ".Values.besideCore.enabled",
	"templates/custom-resources.yaml": "not .Values.namespaced",
	"templates/removals.yaml":         `not (has "--unprotected" .Values.args)`,
}

// replacement replaces a marker with template text.
type replacement struct{ marker, with string }

var replacements = map[string][]replacement{
	"templates/rbac.yaml": {
		{heldRules("  - xpkgchartgroup.example.org\n"), "{{- if not .Values.namespaced }}\n" + packageGroups("clusterroles") +
			"{{- end }}\n"},
		{orphansRule, "{{- if eq .Values.dependencyRemoval \"Orphans\" }}\n" + orphansRule + "{{- end }}\n"},
		{firstGenerationRules(), "{{- if .Values.firstGeneration }}\n" + firstGenerationRules() + anyPackageInNamespaces +
			"{{- end }}\n"},
		{
			policyRule("xpkgchartpolicy"), "{{- if .Values.namespaced }}\n" + packageGroups("roles") + "{{- end }}\n" +
				"{{- with .Values.permissions.policy }}\n" + policyRule("{{ . | quote }}") + "{{- end }}\n",
		},
	},
	"templates/runtime-fence.yaml": {{"xpkgchartpolicy", "{{ .Values.permissions.policy }}"}},
	"templates/crossplane-fence.yaml": {
		{"xpkgchartcore:xpkgchartaccount", "{{ .Values.besideCore.namespace | default .Release.Namespace }}:{{ .Values.besideCore.serviceAccount }}"},
	},
	"templates/serviceaccount.yaml": {
		{"metadata:\n", "metadata:\n  {{- with (.Values.serviceAccount).annotations }}\n  annotations:\n    {{- toYaml . | nindent 4 }}\n  {{- end }}\n"},
	},
	"templates/deployment.yaml": {
		{
			scrapeAnnotations,
			"        {{- toYaml (merge (dict) (.Values.podAnnotations | default dict) (dict \"prometheus.io/path\" \"/metrics\" \"prometheus.io/port\" \"8080\" \"prometheus.io/scrape\" \"true\")) | nindent 8 }}\n",
		},
		{"        xpkg.dev/index-keys: xpkgchartkeys\n", "        {{- with .Values.indexKeys }}\n        xpkg.dev/index-keys: {{ . | quote }}\n        {{- end }}\n"},
		{podLabels, podLabels +
			"        {{- with omit (.Values.podLabels | default dict) \"app.kubernetes.io/component\" \"app.kubernetes.io/name\" }}\n        {{- toYaml . | nindent 8 }}\n        {{- end }}\n"},
		{
			homeVariable, namesOfVariables + unlessSet("HOME", homeVariable) +
				"        {{- with .Values.env }}\n        {{- toYaml . | nindent 8 }}\n        {{- end }}\n",
		},
		{"  replicas: 424242\n", "  replicas: {{ .Values.replicas }}\n"},
		{"        image: xpkgchartimage\n", `        image: "{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}{{ with .Values.image.digest }}@{{ . }}{{ end }}"` +
			"\n"},
		{"        imagePullPolicy: IfNotPresent\n", "        imagePullPolicy: {{ .Values.image.pullPolicy | default \"IfNotPresent\" }}\n"},
		{cacheMount, cacheMount +
			"        {{- with .Values.extraVolumeMounts }}\n        {{- toYaml . | nindent 8 }}\n        {{- end }}\n"},
		{"      volumes:\n", "      volumes:\n      {{- with .Values.extraVolumes }}\n      {{- toYaml . | nindent 6 }}\n      {{- end }}\n"},
		{podSecurityContext, replaced("podSecurityContext", "securityContext", podSecurityContext)},
		{topologySpread, replaced("topologySpreadConstraints", "topologySpreadConstraints", topologySpread)},
		{"        - --cache-limit=424242Gi\n", "        - --cache-limit={{ .Values.packageCache.limit }}\n"},
		{
			"        - --permission-policy=configmap/xpkgchartpolicy\n",
			"        {{- with .Values.permissions.policy }}\n        - --permission-policy=configmap/{{ . }}\n        {{- end }}\n" +
				"        {{- if .Values.namespaced }}\n        - --namespaced\n        {{- end }}\n",
		},
		{
			"        - --first-generation\n",
			"        {{- if .Values.firstGeneration }}\n        - --first-generation\n        {{- end }}\n",
		},
		{"        - --index=xpkgchartindex\n", "        {{- range .Values.indexes }}\n        - {{ printf \"--index=%s\" . | quote }}\n        {{- end }}\n"},
		{
			"        - --index-key=/index-keys/keys.pem\n",
			"        {{- if .Values.indexKeys }}\n        - --index-key=/index-keys/keys.pem\n        {{- end }}\n",
		},
		{
			"        - mountPath: /index-keys\n          name: index-keys\n          readOnly: true\n",
			"        {{- if .Values.indexKeys }}\n        - mountPath: /index-keys\n          name: index-keys\n          readOnly: true\n        {{- end }}\n",
		},
		{indexKeysVolume, "      {{- if .Values.indexKeys }}\n" + indexKeysVolume + "      {{- end }}\n"},
		{
			"        - --dependency-removal=Orphans\n",
			"        {{- if eq .Values.dependencyRemoval \"Orphans\" }}\n        - --dependency-removal=Orphans\n        {{- end }}\n",
		},
		{"        - xpkgchartargs\n", "        {{- range .Values.args }}\n        - {{ . | quote }}\n        {{- end }}\n"},
		{
			"        resources:\n          limits:\n            xpkgchart/resources: \"1\"\n",
			"        {{- with .Values.resources }}\n        resources:\n          {{- toYaml . | nindent 10 }}\n        {{- end }}\n",
		},
		{
			"      imagePullSecrets:\n      - name: xpkgchartsecret\n",
			"      {{- with .Values.imagePullSecrets }}\n      imagePullSecrets:\n      {{- range . }}\n      - name: {{ . | quote }}\n      {{- end }}\n      {{- end }}\n",
		},
		{"      affinity:\n        podAffinity: {}\n", given("affinity")},
		{"      nodeSelector:\n        xpkgchart: x\n", given("nodeSelector")},
		{"      tolerations:\n      - key: xpkgcharttoleration\n", given("tolerations")},
		{
			"      priorityClassName: xpkgchartpriority\n",
			"      {{- with .Values.priorityClassName }}\n      priorityClassName: {{ . | quote }}\n      {{- end }}\n",
		},
		{
			"        persistentVolumeClaim:\n          claimName: xpkgchartclaim\n",
			"        {{- if .Values.packageCache.pvc }}\n        persistentVolumeClaim:\n          claimName: {{ .Values.packageCache.pvc | quote }}\n" +
				"        {{- else }}\n        emptyDir:\n          sizeLimit: {{ .Values.packageCache.sizeLimit }}\n        {{- end }}\n",
		},
	},
}

// indexKeysVolume is the volume with the keys of indexes, as YAML.
const indexKeysVolume = "      - downwardAPI:\n          items:\n          - fieldRef:\n              fieldPath: metadata.annotations['xpkg.dev/index-keys']\n" +
	"            path: keys.pem\n        name: index-keys\n"

// The annotations and variables of the Pods that values replace, as YAML: a key that occurs twice is invalid, and
// Kubernetes cannot merge two variables of one name.
const (
	scrapeAnnotations = "        prometheus.io/path: /metrics\n        prometheus.io/port: \"8080\"\n        prometheus.io/scrape: \"true\"\n"
	homeVariable      = "        - name: HOME\n          value: /cache\n"
)

// Parts of the Pods that values extend or replace, as YAML.
const (
	podLabels          = "      labels:\n        app.kubernetes.io/component: package-manager\n        app.kubernetes.io/name: xpkg\n"
	cacheMount         = "        - mountPath: /cache\n          name: cache\n"
	podSecurityContext = "      securityContext:\n        fsGroup: 65532\n        runAsGroup: 65532\n        runAsNonRoot: true\n        runAsUser: 65532\n" +
		"        seccompProfile:\n          type: RuntimeDefault\n"
	topologySpread = "      topologySpreadConstraints:\n      - labelSelector:\n          matchLabels:\n            app.kubernetes.io/component: package-manager\n" +
		"            app.kubernetes.io/name: xpkg\n        maxSkew: 1\n        topologyKey: kubernetes.io/hostname\n        whenUnsatisfiable: ScheduleAnyway\n"
)

// replaced returns a field of the pod from a value or, without it, as it is in the manifests.
func replaced(value, field, usual string) string {
	return "      {{- if .Values." + value + " }}\n      " + field + ":\n        {{- toYaml .Values." + value +
		" | nindent 8 }}\n      {{- else }}\n" + usual + "      {{- end }}\n"
}

// namesOfVariables reads the names of the variables in the values.
const namesOfVariables = "        {{- $variables := list }}\n        {{- range .Values.env }}\n        {{- $variables = append $variables .name }}\n        {{- end }}\n"

// unlessSet renders a variable unless the values contain one of the name.
func unlessSet(name, variable string) string {
	return "        {{- if not (has \"" + name + "\" $variables) }}\n" + variable + "        {{- end }}\n"
}

// given returns a replacement for a field of the pod that is copied from the values, if
// set.
func given(field string) string {
	return "      {{- with .Values." + field + " }}\n      " + field +
		":\n        {{- toYaml . | nindent 8 }}\n      {{- end }}\n"
}

// heldRules returns the rules that follow from the groups of packages, as YAML.
func heldRules(groups string) string {
	return "- apiGroups:\n" + groups + "  resources:\n  - '*'\n  verbs:\n  - '*'\n" +
		"- apiGroups:\n  - \"\"\n  - coordination.k8s.io\n  resources:\n  - configmaps\n  - events\n  - leases\n  - secrets\n  verbs:\n  - '*'\n" +
		"- apiGroups:\n  - events.k8s.io\n  resources:\n  - events\n  verbs:\n  - '*'\n"
}

// packageGroups returns the rules for the groups in the values, or for all of them.
func packageGroups(roles string) string {
	return "{{- if has \"*\" .Values.permissions.packageGroups }}\n" +
		"- apiGroups:\n  - rbac.authorization.k8s.io\n  resources:\n  - " + roles + "\n  verbs:\n  - escalate\n  - bind\n" +
		"{{- else if .Values.permissions.packageGroups }}\n" +
		heldRules("  {{- range sortAlpha .Values.permissions.packageGroups }}\n  - {{ . | quote }}\n  {{- end }}\n") +
		"{{- end }}\n"
}

// orphansRule lets the manager delete packages.
const orphansRule = "- apiGroups:\n  - pkg.crossplane.io\n  resources:\n  - providers\n  - configurations\n  - functions\n  verbs:\n  - delete\n"

// firstGenerationRules returns the rules of the API of the first generation of packages, as YAML.
func firstGenerationRules() string {
	var b strings.Builder
	list := func(key string, words []string) {
		fmt.Fprintf(&b, "  %s:\n", key)
		for _, w := range words {
			fmt.Fprintf(&b, "  - %s\n", cmp.Or(w, `""`))
		}
	}
	for _, r := range bootstrap.FirstGenerationRules() {
		at := b.Len()
		list("apiGroups", r.APIGroups)
		list("resources", r.Resources)
		list("verbs", r.Verbs)
		text := b.String()
		b.Reset()
		b.WriteString(text[:at] + "- " + text[at+2:])
	}
	return b.String()
}

// anyPackageInNamespaces lets the manager grant the controllers of namespaces any permission there, if it may grant any
// package all of them.
const anyPackageInNamespaces = "{{- if has \"*\" .Values.permissions.packageGroups }}\n" +
	"- apiGroups:\n  - rbac.authorization.k8s.io\n  resources:\n  - roles\n  verbs:\n  - escalate\n  - bind\n{{- end }}\n"

// policyRule lets the manager read the policy of a name.
func policyRule(name string) string {
	return "- apiGroups:\n  - \"\"\n  resourceNames:\n  - " + name +
		"\n  resources:\n  - configmaps\n  verbs:\n  - get\n  - list\n  - watch\n"
}
