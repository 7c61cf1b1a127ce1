Creator "by hand"
# a comment
graph [
  multigraph 1
  name "small"
  node [
    id 0
    label "Z&#252;rich"
    Latitude 47.37
    Longitude 8.54
  ]
  node [
    id 1
    label "St. Gallen"
    graphics [
      x 100
      y -20
    ]
    Latitude 47.42
    Longitude 9.37
  ]
  node [
    id 2
    label "Gen&#232;ve"
    Latitude 46.2
    Longitude 6.15
  ]
  node [
    id 3
    label "Z&#252;rich"
  ]
  edge [
    source 0
    target 1
    key 0
    LinkSpeedRaw 10000000000.0
  ]
  edge [
    source 0
    target 1
    key 1
    delay "2 ms"
  ]
  edge [
    source 0
    target 3
    key 0
    weight 3
  ]
  edge [
    source 1
    target 2
    key 0
    length 280.5
  ]
]
