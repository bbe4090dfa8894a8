{{- define "goprof.name" -}}
{{- .Release.Name | trunc 63 | trimSuffix "-" -}}
{{- end -}}

{{- define "goprof.selector" -}}
app.kubernetes.io/name: goprof-agent
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "goprof.labels" -}}
{{ include "goprof.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- end -}}

{{- define "goprof.port" -}}
{{- with .Values.config.listen }}{{ . | splitList ":" | last }}{{ end -}}
{{- end -}}
