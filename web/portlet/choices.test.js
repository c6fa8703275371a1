import assert from 'node:assert/strict';
import { test } from 'node:test';
import { choices } from './choices.js';

test('flat lists, grouped lists and switches are parsed', () => {
  const [model, effort, web] = choices([
    {
      id: 'model',
      name: 'Model',
      category: 'model',
      type: 'select',
      currentValue: 'b',
      options: [{ value: 'a', name: 'A' }, { value: 'b' }],
    },
    {
      id: 'effort',
      name: 'Effort',
      type: 'select',
      currentValue: 'low',
      options: [{ group: 'g', name: 'Usual', options: [{ value: 'low', name: 'Low' }] }],
    },
    { id: 'web', name: 'Web', type: 'boolean', currentValue: true },
  ]);
  assert.deepEqual(model.groups, [
    {
      name: '',
      options: [
        { value: 'a', name: 'A', description: '' },
        { value: 'b', name: 'b', description: '' },
      ],
    },
  ]);
  assert.equal(model.current, 'b');
  assert.equal(effort.groups[0].name, 'Usual');
  assert.deepEqual([web.kind, web.current], ['boolean', true]);
});

test('invalid and unknown options are omitted', () => {
  assert.deepEqual(
    choices([
      {},
      { id: 7 },
      { id: 'a', type: 'slider' },
      { id: 'b', type: 'select', options: 'x' },
      { id: 'c', type: 'select', options: [null, 1, {}] },
    ]),
    [],
  );
});
